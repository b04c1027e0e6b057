import dev.ramway.ErrorKind;
import dev.ramway.RamwayException;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;

/** Java's agent: ../README.md says what each command and flag means. */
final class Main {
    private Main() {}

    // Not System.out, which has locks and buffers of its own: an event is one write.
    private static final FileOutputStream OUT = new FileOutputStream(FileDescriptor.out);

    /** Prints a line at once. */
    static void say(String line) {
        try {
            OUT.write((line + "\n").getBytes(StandardCharsets.UTF_8));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    public static void main(String[] words) {
        int status;
        if (words.length == 1 && words[0].equals("serve")) {
            status = serve();
        } else {
            status = play(Arrays.asList(words));
        }
        // A thread may still read standard input.
        System.exit(status);
    }

    private static int serve() {
        for (String line = Input.line(); line != null; line = Input.line()) {
            play(Arrays.asList(line.split(" ")));
            say("over");
        }
        return 0;
    }

    /** Plays one command; gives the exit status. */
    private static int play(List<String> words) {
        Args args = null;
        try {
            args = new Args(words);
            if (args.cpu >= 0) {
                Sys.pin(args.cpu);
            }
            if (args.virtual) {
                onVirtualThread(args);
            } else {
                run(args);
            }
            return 0;
        } catch (Args.UsageException e) {
            System.err.println(e.getMessage());
            return 2;
        } catch (Messages.BadException e) {
            say("bad seq=" + e.seq + " text=" + e.getMessage());
            return 1;
        } catch (RamwayException e) {
            say("error " + named(e.kind()) + " text=" + e.getMessage());
            // A vector may well be what cannot be opened.
            return args.command.equals("read") ? 0 : 1;
        } catch (Exception e) {
            e.printStackTrace();
            say("error " + named(ErrorKind.OS) + " text=" + e);
            return 1;
        }
    }

    private static void onVirtualThread(Args args) throws Exception {
        var task = new FutureTask<Void>(() -> {
            run(args);
            return null;
        });
        Thread.ofVirtual().name(args.command).start(task);
        try {
            task.get();
        } catch (ExecutionException e) {
            if (e.getCause() instanceof Exception cause) {
                throw cause;
            }
            throw e;
        }
    }

    private static void run(Args args) throws Exception {
        switch (args.command) {
            case "produce" -> Produce.play(args);
            case "consume" -> Consume.play(args);
            case "die" -> Die.play(args);
            case "read" -> Look.read(args);
            case "show" -> Look.show(args);
            case "echo" -> Talk.echo(args);
            case "ping" -> Talk.ping(args);
            case "tensors" -> Tensors.play(args);
            case "flood" -> Speed.flood(args);
            case "drain" -> Speed.drain(args);
            default -> throw new Args.UsageException("no such command: " + args.command);
        }
    }

    /** ABI.md's name and number. */
    static String named(ErrorKind kind) {
        return "name=" + kind.formatName() + " number=" + kind.number();
    }

    /** What a call ended with: a kind, of an exception or of a call that never waits and gave nothing. */
    static ErrorKind kindOf(Exception e) {
        if (e instanceof Ending ending) {
            return ending.kind;
        }
        if (e instanceof RamwayException r) {
            return r.kind();
        }
        throw new IllegalStateException("not an error of the library's", e);
    }

    /** Whether the stream may go on after this. */
    static boolean isEnding(ErrorKind kind) {
        return kind == ErrorKind.CLOSED || kind == ErrorKind.PEER_DEAD;
    }

    /** A call that never waits gave nothing. */
    static final class Ending extends Exception {
        private static final long serialVersionUID = 1L;
        final ErrorKind kind;

        Ending(ErrorKind kind) {
            super(kind.summary(), null, false, false);
            this.kind = kind;
        }
    }
}
