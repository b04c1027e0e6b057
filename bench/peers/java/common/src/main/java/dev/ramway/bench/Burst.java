package dev.ramway.bench;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.Map;

/**
 * How much to do at a stretch.
 *
 * @param test {@code rtt}, {@code one-way} or {@code call}; there are others, which nothing here can do
 * @param mode how the sides wait ({@code spin}, {@code hybrid}, {@code block}) or publish ({@code each}, {@code batch})
 * @param size bytes of a message, a multiple of 8
 * @param smallest the same, unless messages are of different sizes
 * @param count messages or round trips
 * @param group operations that one sample stands for
 * @param batch messages that are published together
 * @param busy nanoseconds that the receiver works on each message
 */
public record Burst(String test, String mode, int size, int smallest, long count, int group, int batch, long busy) {
    static Burst read(Map<String, Object> words) {
        return new Burst(
                (String) words.get("test"),
                (String) words.get("mode"),
                Math.toIntExact((Long) words.get("size")),
                Math.toIntExact((Long) words.get("smallest")),
                (Long) words.get("count"),
                Math.toIntExact((Long) words.get("group")),
                Math.toIntExact((Long) words.get("batch")),
                (Long) words.get("work_ns"));
    }

    static Burst read(DataInput in) throws IOException {
        return new Burst(in.readUTF(), in.readUTF(), in.readInt(), in.readInt(), in.readLong(), in.readInt(),
                in.readInt(), in.readLong());
    }

    void write(DataOutput out) throws IOException {
        out.writeUTF(test);
        out.writeUTF(mode);
        out.writeInt(size);
        out.writeInt(smallest);
        out.writeLong(count);
        out.writeInt(group);
        out.writeInt(batch);
        out.writeLong(busy);
    }

    Burst times(long factor) {
        return new Burst(test, mode, size, smallest, count * factor, group, batch, busy);
    }

    /** {@return whether all messages are of one size, and nothing is done with them but reading} */
    public boolean plain() {
        return smallest == size && size >= 8 && size % 8 == 0 && busy == 0;
    }

    /** {@return whether it is a round trip of a mechanism that polls} */
    public boolean trips() {
        return plain() && test.equals("rtt") && mode.equals("spin");
    }

    /** {@return whether it is one call after the other, of a mechanism that sleeps, with a reply that is what was sent} */
    public boolean calls() {
        return plain() && test.equals("call") && mode.equals("block") && size == 32 && batch == 1;
    }

    /** {@return whether it is a stream} */
    public boolean streams() {
        return plain() && test.equals("one-way");
    }

    /** {@return whether messages are published together} */
    public boolean together() {
        return mode.equals("batch");
    }
}
