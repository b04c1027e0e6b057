package dev.ramway.bench;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * What one burst measured.
 *
 * @param elapsed nanoseconds from the first operation's begin until both sides were through
 * @param operations how many that were
 * @param samples nanoseconds of every group of operations
 * @param leading what the leading process used
 * @param following what the following process used
 */
public record Outcome(long elapsed, long operations, long[] samples, Usage.Used leading, Usage.Used following) {
    Map<String, Object> words() {
        long[] picoseconds = new long[samples.length];
        for (int i = 0; i < samples.length; i++) {
            picoseconds[i] = 1000 * samples[i];
        }
        Map<String, Object> words = new LinkedHashMap<>();
        words.put("elapsed_ps", 1000 * elapsed);
        words.put("operations", operations);
        words.put("samples_ps", picoseconds);
        words.put("cpu_ns", new long[] {leading.cpu(), following.cpu()});
        words.put("peak_rss", new long[] {leading.peak(), following.peak()});
        words.put("shared", new long[] {leading.shared(), following.shared()});
        words.put("context_switches", new long[] {leading.switches(), following.switches()});
        words.put("allocations", null);
        words.put("allocated_bytes", new long[] {leading.allocated(), following.allocated()});
        words.put("parts", List.of());
        return words;
    }
}
