import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Optional;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** Standard input, line by line, by a thread of its own: --linger waits for a line or a time, whichever is first. */
final class Input {
    private Input() {}

    // Empty for the end.
    private static BlockingQueue<Optional<String>> lines;
    private static boolean ended;

    private static BlockingQueue<Optional<String>> lines() {
        if (lines == null) {
            var to = new LinkedBlockingQueue<Optional<String>>();
            Thread reader = new Thread(() -> readAll(to), "standard input");
            reader.setDaemon(true);
            reader.start();
            lines = to;
        }
        return lines;
    }

    private static void readAll(BlockingQueue<Optional<String>> to) {
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                to.add(Optional.of(line));
            }
        } catch (IOException e) {
            // Like its end: nobody has anything to say any more.
        }
        to.add(Optional.empty());
    }

    /** The next line, or null once there is none any more. */
    static String line() {
        return line(Long.MAX_VALUE);
    }

    /** --linger: that long, or until a line arrives or standard input ends. */
    static void linger(Args args) {
        if (args.linger >= 0) {
            line(args.linger);
        }
    }

    /** --pause: until a line arrives. */
    static void pause(Args args) {
        if (args.pause) {
            line();
        }
    }

    private static String line(long ms) {
        if (ended) {
            return null;
        }
        Optional<String> next;
        try {
            next = lines().poll(ms, TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            throw new IllegalStateException("nobody interrupts this thread", e);
        }
        if (next != null && next.isEmpty()) {
            ended = true;
        }
        return next == null ? null : next.orElse(null);
    }
}
