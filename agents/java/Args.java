import dev.ramway.WaitMode;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

/** The flags, the same for every command; ../README.md says what each means. */
final class Args {
    /** Wrong flags. */
    static final class UsageException extends RuntimeException {
        private static final long serialVersionUID = 1L;

        UsageException(String text) {
            super(text, null, false, false);
        }
    }

    private static final Set<String> FLAGS = Set.of("ring", "back", "listen", "connect", "region", "create", "capacity",
            "align", "wait", "timeout", "cpu", "sizes", "start", "count", "until", "resume", "batch", "how", "endings",
            "progress", "linger", "oversize", "pace", "work", "group", "check", "role", "size", "pause",
            "warm-up", "poll");

    final String command;
    private final Map<String, String> given = new HashMap<>();

    final String ring;
    final String back;
    final String listen;
    final String connect;
    final String region;
    final String how;
    final String role;
    final boolean create;
    final boolean resume;
    final boolean progress;
    final boolean oversize;
    final boolean check;
    final boolean pause;
    final long capacity;
    final int align;
    final WaitMode wait;
    /** The longest single wait; null for no limit. */
    final Duration timeout;
    /** A wait is a loop of calls with this time-out; null: one call. */
    final Duration poll;
    /** Whether no flag says how long a wait may last, and a loop over all messages will do. */
    final boolean patient;
    /**
     * Whether the command is played on a virtual thread: where sleeping is asked for, unless RAMWAY_CONFORMANCE_CALLS says
     * virtual or platform for all.
     */
    final boolean virtual;
    final int cpu;
    final Sizes sizes;
    final long size;
    final long start;
    final long count;
    final long until;
    final int batch;
    final long endings;
    final long group;
    /** How many of the first messages are not measured. */
    final long warmUp;
    final long linger;
    final long pace;
    final long work;

    Args(List<String> words) {
        if (words.isEmpty()) {
            throw new UsageException("a command is missing");
        }
        command = words.getFirst();
        for (int i = 1; i < words.size(); i += 2) {
            String word = words.get(i);
            if (!word.startsWith("--") || !FLAGS.contains(word.substring(2)) || i + 1 == words.size()) {
                throw new UsageException("not a flag with a value: " + word);
            }
            given.put(word.substring(2), words.get(i + 1));
        }
        ring = given.get("ring");
        back = given.get("back");
        listen = given.get("listen");
        connect = given.get("connect");
        region = given.get("region");
        how = given.getOrDefault("how", "");
        role = given.getOrDefault("role", "");
        create = yes("create", "no");
        resume = yes("resume", "no");
        progress = yes("progress", "no");
        oversize = yes("oversize", "no");
        check = yes("check", "yes");
        pause = yes("pause", "no");
        capacity = number("capacity", 65536);
        align = (int) number("align", 16);
        wait = wait(given.getOrDefault("wait", "hybrid"));
        long limit = number("timeout", 20_000);
        timeout = limit == 0 ? null : Duration.ofMillis(limit);
        long each = number("poll", -1);
        poll = each < 0 ? null : Duration.ofNanos(1000 * each);
        patient = !given.containsKey("timeout") && poll == null;
        String calls = System.getenv().getOrDefault("RAMWAY_CONFORMANCE_CALLS", wait == WaitMode.BLOCK ? "virtual" : "platform");
        virtual = calls.equals("virtual");
        cpu = (int) number("cpu", -1);
        sizes = Sizes.parse(given.getOrDefault("sizes", "mixed"));
        size = number("size", 0);
        start = number("start", -1);
        count = number("count", -1);
        until = number("until", -1);
        batch = (int) number("batch", -1);
        endings = number("endings", 1);
        group = Math.max(number("group", 1), 1);
        warmUp = number("warm-up", count / 10);
        linger = number("linger", -1);
        pace = number("pace", 0);
        work = number("work", 0);
    }

    private long number(String flag, long otherwise) {
        String text = given.get(flag);
        try {
            return text == null ? otherwise : Long.parseLong(text);
        } catch (NumberFormatException e) {
            throw new UsageException("--" + flag + " " + text + " is no number");
        }
    }

    private boolean yes(String flag, String otherwise) {
        String text = given.getOrDefault(flag, otherwise);
        if (!text.equals("yes") && !text.equals("no")) {
            throw new UsageException("--" + flag + " is yes or no");
        }
        return text.equals("yes");
    }

    private static WaitMode wait(String text) {
        try {
            return WaitMode.valueOf(text.toUpperCase(Locale.ROOT));
        } catch (IllegalArgumentException e) {
            throw new UsageException("--wait is spin, block or hybrid");
        }
    }

    /** Says no where a command needs another value of --how or --role. */
    void oneOf(String flag, String value, String... values) {
        if (!List.of(values).contains(value)) {
            throw new UsageException("--" + flag + " is one of " + String.join(", ", values));
        }
    }

    /** --count, where a command cannot do without. */
    long counted() {
        if (count < 0) {
            throw new UsageException("--count is missing");
        }
        return count;
    }

    /** The first message's number. */
    long first() {
        return Math.max(start, 0);
    }

    /** How long message number seq is: a number of bytes, or what is neither. */
    record Sizes(boolean ramp, long fixed) {
        static Sizes parse(String text) {
            if (text.equals("mixed") || text.equals("ramp")) {
                return new Sizes(text.equals("ramp"), -1);
            }
            try {
                return new Sizes(false, Long.parseLong(text));
            } catch (NumberFormatException e) {
                throw new UsageException("--sizes is mixed, ramp or a number");
            }
        }

        static Sizes of(long fixed) {
            return new Sizes(false, fixed);
        }

        long length(long seq, long longest) {
            if (fixed >= 0) {
                return fixed;
            }
            if (ramp) {
                return seq % (longest + 1);
            }
            if (seq % 1000 == 999) {
                return longest;
            }
            if (seq % 100 == 0) {
                return 0;
            }
            long x = seq * 2_654_435_761L & 0xFFFF_FFFFL;
            return seq % 50 == 1 ? x % (longest + 1) : x % 257;
        }
    }
}
