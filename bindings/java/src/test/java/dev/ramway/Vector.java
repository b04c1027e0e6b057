package dev.ramway;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * An image of format/vectors/segments.json or topics.json, and what each reader must find in it. What is said there is said in the
 * README beside it.
 */
record Vector(String name, String kind, long size, List<Run> bytes, List<Reader> readers) {
    /** Bytes at an offset; of a mask null, all bits of them. */
    record Run(long at, byte[] bytes, byte[] mask) {}

    record Attached(long epoch, long peerEpoch, long capacity, long max) {}

    record Sum(long length, long crc32) {}

    record Then(String when, List<Run> bytes, boolean hangUp) {}

    /** seq and lost are a topic's, and 0 of a ring. */
    record Expected(long typeId, String tag, long length, long crc32, String seq, String lost) {
        Expected(long typeId, String tag, long length, long crc32) {
            this(typeId, tag, length, crc32, "0", "0");
        }
    }

    record Reader(String as, String held, String open, Attached attached, Sum region, Then then, List<Expected> messages, String last,
            String label, List<Long> locked, String lagged, int send, String end, List<Run> leaves, String nameAfter) {}

    static List<Vector> all() throws IOException {
        return all("segments", "1.0");
    }

    static List<Vector> topics() throws IOException {
        return all("topics", "1.1");
    }

    private static List<Vector> all(String what, String format) throws IOException {
        Path file = Path.of("../../format/vectors/" + what + ".json");
        Fields all = new Fields(Json.parse(Files.readString(file)));
        if (!format.equals(all.text("format"))) {
            throw new IllegalArgumentException("another format of vectors");
        }
        List<Vector> vectors = all.list(what).stream().map(Vector::of).toList();
        all.end();
        return vectors;
    }

    private static Vector of(Fields f) {
        f.text("about");
        f.text("class");
        Vector v = new Vector(f.text("name"), f.text("kind"), f.number("size"), runs(f, "bytes"),
                f.list("readers").stream().map(Vector::reader).toList());
        f.end();
        return v;
    }

    private static List<Run> runs(Fields f, String name) {
        return f.list(name).stream().map(run -> {
            Run r = new Run(run.number("at"), HexFormat.of().parseHex(run.text("hex")),
                    run.has("mask") ? HexFormat.of().parseHex(run.text("mask")) : null);
            run.end();
            return r;
        }).toList();
    }

    private static Reader reader(Fields f) {
        // A topic's other side writes before the reader looks, and its locks are bytes.
        boolean ofTopic = f.get("then") instanceof List || f.get("held") instanceof List;
        Then then = f.get("then") instanceof List ? new Then("paused", runs(f, "then"), false) : ofTopic ? null : then(f.fields("then"));
        List<Long> locked = f.get("held") instanceof List<?> bytes ? bytes.stream().map(each -> (Long) each).toList() : List.of();
        Reader r = new Reader(f.text("as"), locked.isEmpty() ? f.text("held") : null, f.text("open"),
                attached(f.fields("attached")), sum(f.fields("region")), then, messages(f), f.text("last"), f.text("label"), locked,
                f.text("lagged"), (int) f.number("send"), f.text("end"), runs(f, "leaves"),
                f.text("name_after"));
        f.end();
        return r;
    }

    private static Attached attached(Fields f) {
        return f == null ? null : f.end(new Attached(f.number("epoch"), f.number("peer_epoch"), f.number("capacity"), f.number("max")));
    }

    private static Sum sum(Fields f) {
        return f == null ? null : f.end(new Sum(f.number("len"), f.number("crc32")));
    }

    private static Then then(Fields f) {
        return f == null ? null : f.end(new Then(f.text("when"), runs(f, "bytes"), f.flag("hang_up")));
    }

    private static List<Expected> messages(Fields f) {
        return f.list("messages").stream().map(m -> m.end(new Expected(m.number("type_id"), m.text("tag"), m.number("len"),
                m.number("crc32"), m.has("seq") ? m.text("seq") : "0", m.has("lost") ? m.text("lost") : "0"))).toList();
    }

    /** The fields of an object, all of which have to be asked for: what this test does not know it must not pass over. */
    private static final class Fields {
        private final Map<?, ?> all;
        private final Set<Object> asked = new HashSet<>();

        Fields(Object object) {
            all = (Map<?, ?>) object;
        }

        boolean has(String name) {
            return all.containsKey(name);
        }

        private Object get(String name) {
            asked.add(name);
            return all.get(name);
        }

        String text(String name) {
            return (String) get(name);
        }

        long number(String name) {
            return get(name) instanceof Long n ? n : 0;
        }

        boolean flag(String name) {
            return get(name) instanceof Boolean b && b;
        }

        Fields fields(String name) {
            Object object = get(name);
            return object == null ? null : new Fields(object);
        }

        List<Fields> list(String name) {
            return get(name) instanceof List<?> list ? list.stream().map(Fields::new).toList() : List.of();
        }

        void end() {
            if (!asked.containsAll(all.keySet())) {
                throw new IllegalArgumentException("unknown fields in " + all.keySet());
            }
        }

        <T> T end(T value) {
            end();
            return value;
        }
    }
}
