package dev.ramway.bench;

import java.util.List;
import java.util.Map;

/**
 * What both processes know before they open a mechanism.
 *
 * @param directory in memory, empty at first and nobody else's; removed afterwards
 * @param capacity bytes of buffering between the two sides, where that can be chosen
 * @param cpus where the leading and the following process are pinned to; null: not pinned
 * @param realtime whether to ask for SCHED_FIFO and locked memory
 */
public record Setup(String directory, long capacity, List<Object> cpus, boolean realtime) {
    @SuppressWarnings("unchecked")
    static Setup read(Map<String, Object> words) {
        return new Setup((String) words.get("directory"), (Long) words.get("capacity"),
                (List<Object>) words.get("cpus"), (Boolean) words.get("realtime"));
    }

    /**
     * {@return where a side is pinned to, or null}
     *
     * @param leads which side
     */
    public Integer cpu(boolean leads) {
        return cpus.get(leads ? 0 : 1) instanceof Long cpu ? Math.toIntExact(cpu) : null;
    }
}
