import dev.ramway.TimedOutException;
import dev.ramway.WaitMode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;

/** A command, {@code word key=value key=value ...}. What a command does not take out of it is refused. */
final class Line {
    /** A command that is not understood. */
    static final class RefusedException extends RuntimeException {
        private static final long serialVersionUID = 1L;

        RefusedException(String text) {
            super(text, null, false, false);
        }
    }

    private static final BufferedReader IN = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));

    final String word;
    private final Map<String, String> fields = new HashMap<>();

    private Line(String text) {
        String[] words = text.split(" ");
        word = words[0];
        for (int i = 1; i < words.length; i++) {
            int equals = words[i].indexOf('=');
            fields.put(words[i].substring(0, Math.max(equals, 0)), words[i].substring(equals + 1));
        }
    }

    /** The next line of standard input; null when that ends. */
    static Line next() {
        try {
            String text = IN.readLine();
            return text == null ? null : new Line(text);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    String text(String key, String otherwise) {
        String text = fields.remove(key);
        return text == null ? otherwise : text;
    }

    long number(String key, long otherwise) {
        String text = fields.remove(key);
        try {
            // A tag needs all 64 bits.
            return text == null ? otherwise : text.startsWith("-") ? Long.parseLong(text) : Long.parseUnsignedLong(text);
        } catch (NumberFormatException e) {
            throw new RefusedException(key + "=" + text + " is no number");
        }
    }

    boolean has(String key) {
        return fields.containsKey(key);
    }

    boolean yes(String key) {
        return text(key, "no").equals("yes");
    }

    /** Whether it asks for a wait without polling. */
    boolean sleeps() {
        return "block".equals(fields.get("wait"));
    }

    WaitMode waitMode() {
        return WaitMode.valueOf(text("wait", "hybrid").toUpperCase(Locale.ROOT));
    }

    Limits limits() {
        long ms = number("timeout", 20_000);
        long us = number("poll", -1);
        return new Limits(ms == 0 ? null : Duration.ofMillis(ms), us < 0 ? null : Duration.ofNanos(1000 * us));
    }

    /** Nothing else was said. */
    void end() {
        if (!fields.isEmpty()) {
            throw new RefusedException(word + " does not know " + fields.keySet());
        }
    }

    /** A call that waits. */
    interface Waiting<T> {
        T call() throws InterruptedException;
    }

    /** A call that waits for so long. */
    interface Limited<T> {
        T call(Duration limit) throws InterruptedException;
    }

    /** A call that gives nothing. */
    interface Silent {
        void call() throws InterruptedException;
    }

    /** The same for so long. */
    interface SilentLimited {
        void call(Duration limit) throws InterruptedException;
    }

    /**
     * How long a wait may last.
     *
     * @param whole null for no limit
     * @param poll a wait is a loop of calls with this time-out; null: one call
     */
    record Limits(Duration whole, Duration poll) {
        /** What a call gives within the time that a wait may last, in one call or by polling. */
        <T> T within(Waiting<T> waiting, Limited<T> limited) throws InterruptedException {
            if (poll == null) {
                return whole == null ? waiting.call() : limited.call(whole);
            }
            long began = System.nanoTime();
            while (true) {
                try {
                    return limited.call(poll);
                } catch (TimedOutException e) {
                    if (whole != null && System.nanoTime() - began >= whole.toNanos()) {
                        throw e;
                    }
                }
            }
        }

        void run(Silent waiting, SilentLimited limited) throws InterruptedException {
            within(() -> {
                waiting.call();
                return this;
            }, limit -> {
                limited.call(limit);
                return this;
            });
        }
    }
}
