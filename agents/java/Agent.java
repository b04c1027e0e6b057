import dev.ramway.Bus;
import dev.ramway.ConnectOptions;
import dev.ramway.ErrorKind;
import dev.ramway.ListenOptions;
import dev.ramway.Listener;
import dev.ramway.Options;
import dev.ramway.RamwayException;
import dev.ramway.Receiver;
import dev.ramway.ReceivingEnd;
import dev.ramway.RpcException;
import dev.ramway.Sender;
import dev.ramway.SendingEnd;
import dev.ramway.WaitMode;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;

/** Java's agent: ../README.md has the protocol. What is open: both halves of a bus, what a role needs of rings, a side of a topic, or of RPC. */
final class Agent {
    /** How long to wait for a name, a role or the other side. */
    static final Duration OPEN_TIMEOUT = Duration.ofSeconds(10);

    // Not System.out, which has locks and buffers of its own: an event is one write.
    private static final FileOutputStream OUT = new FileOutputStream(FileDescriptor.out);

    SendingEnd tx;
    ReceivingEnd<?> rx;
    private Bus bus;
    private RpcServe server;
    private RpcCalls client;
    private WaitMode wait;

    private Agent() {}

    /** Prints a line at once. */
    static void say(String line) {
        try {
            OUT.write((line + "\n").getBytes(StandardCharsets.UTF_8));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** ABI.md's name and number. */
    static String named(ErrorKind kind) {
        return "name=" + kind.formatName() + " number=" + kind.number();
    }

    public static void main(String[] words) throws InterruptedException {
        int status = 0;
        // What is open is played on one thread, from open to close.
        for (Line line = Line.next(); line != null && status == 0; line = status == 0 ? Line.next() : null) {
            int[] of = new int[1];
            Line first = line;
            Runnable session = () -> of[0] = new Agent().play(first);
            (isVirtual(first) ? Thread.ofVirtual() : Thread.ofPlatform()).start(session).join();
            status = of[0];
        }
        System.exit(status);
    }

    /** Where sleeping is asked for, unless RAMWAY_CONFORMANCE_CALLS says virtual or platform for all. */
    private static boolean isVirtual(Line line) {
        String calls = System.getenv("RAMWAY_CONFORMANCE_CALLS");
        return calls == null ? line.sleeps() : calls.equals("virtual");
    }

    /** Plays commands until what the first one has opened is closed; gives the exit status. */
    private int play(Line first) {
        try {
            for (Line line = first; line != null; line = Line.next()) {
                try {
                    obey(line);
                } catch (RamwayException e) {
                    say("error " + named(e.kind()) + " text=" + e.getMessage());
                } catch (RpcException e) {
                    say("error " + named(e.error().orElse(ErrorKind.OS)) + " text=" + e.getMessage());
                }
                if (tx == null && rx == null && server == null && client == null) {
                    break;
                }
            }
            return 0;
        } catch (Line.RefusedException e) {
            say("refused text=" + e.getMessage());
            return 2;
        } catch (Messages.BadException e) {
            say("bad seq=" + e.seq + " text=" + e.getMessage());
        } catch (Exception e) {
            e.printStackTrace();
        }
        return 1;
    }

    private void obey(Line line) throws Exception {
        if (server != null) {
            server = server.obey(line) ? server : null;
            return;
        }
        if (client != null) {
            client = client.obey(line) ? client : null;
            return;
        }
        switch (line.word) {
            case "open" -> open(line);
            case "close" -> close(line);
            case "produce" -> new Produce(sending(), line).run();
            case "consume" -> new Consume(receiving(), wait, line).run();
            case "echo" -> Talk.echo(sending(), receiving(), line);
            case "ping" -> Talk.ping(sending(), receiving(), line);
            case "last" -> Talk.last(sending(), line);
            case "take" -> Talk.take(receiving(), line);
            case "tensor" -> Tensors.send(sending(), line);
            case "write" -> Look.write(sending(), line);
            case "hold" -> Look.hold(receiving(), line);
            case "region" -> Look.region(line);
            case "measure" -> new Measure(this, line).run();
            case "about" -> {
                line.end();
                say("about text=Java " + Runtime.version().feature());
            }
            default -> throw new Line.RefusedException("no such command: " + line.word);
        }
    }

    private SendingEnd sending() {
        if (tx == null) {
            throw new Line.RefusedException("there is nothing to send to");
        }
        return tx;
    }

    private ReceivingEnd<?> receiving() {
        if (rx == null) {
            throw new Line.RefusedException("there is nothing to receive from");
        }
        return rx;
    }

    private void open(Line line) throws InterruptedException {
        String role = line.text("role", "");
        boolean consumes = role.equals("consumer");
        String rpc = line.text("rpc", null);
        if (rpc != null) {
            switch (role) {
                case "server" -> server = new RpcServe(rpc, line);
                case "client" -> client = new RpcCalls(rpc, line);
                default -> throw new Line.RefusedException("role=" + role);
            }
            return;
        }
        String topic = line.text("topic", null);
        if (topic != null) {
            wait = line.waitMode();
            Topics.open(this, topic, consumes, wait, line);
            sayAttached(consumes);
            return;
        }
        String ring = line.text("ring", null);
        String back = line.text("back", null);
        String listen = line.text("listen", null);
        String connect = line.text("connect", null);
        boolean create = line.yes("create");
        long capacity = line.number("capacity", 65536);
        int align = (int) line.number("align", 16);
        wait = line.waitMode();
        boolean prefault = line.yes("prefault");
        line.end();
        if (listen != null) {
            var options = ListenOptions.DEFAULT.withCapacities(capacity, capacity).withAlign(align).withWaitMode(wait);
            try (Listener listener = Listener.bind(listen, options)) {
                bus = listener.accept(OPEN_TIMEOUT);
            }
        } else if (connect != null) {
            bus = Bus.connect(connect, ConnectOptions.DEFAULT.withTimeout(OPEN_TIMEOUT).withWaitMode(wait));
        } else {
            Options options = Options.DEFAULT.withTimeout(OPEN_TIMEOUT).withWaitMode(wait).withPrefault(prefault);
            String to = consumes ? back : ring;
            String from = consumes ? ring : back;
            if (create) {
                options = options.withCapacity(capacity).withAlign(align);
                tx = to == null ? null : Sender.create(to, options);
                rx = from == null ? null : Receiver.create(from, options);
            } else {
                tx = to == null ? null : Sender.open(to, options);
                rx = from == null ? null : Receiver.open(from, options);
            }
        }
        if (bus != null) {
            // It may have one direction only.
            tx = consumes ? null : bus.sender();
            rx = role.equals("producer") ? null : bus.receiver();
        }
        sayAttached(consumes);
    }

    private void sayAttached(boolean consumes) {
        String of = consumes
                ? attached(rx.epoch(), rx.peerEpoch(), rx.capacity(), rx.maxMessageLength())
                : attached(tx.epoch(), tx.peerEpoch(), tx.capacity(), tx.maxMessageLength());
        say("attached pid=" + ProcessHandle.current().pid() + of);
    }

    private static String attached(int epoch, int peerEpoch, long capacity, long longest) {
        return " epoch=" + Integer.toUnsignedString(epoch) + " peer_epoch=" + Integer.toUnsignedString(peerEpoch)
                + " capacity=" + capacity + " max=" + longest;
    }

    private void close(Line line) throws Exception {
        line.end();
        for (AutoCloseable end : bus != null ? new AutoCloseable[] {bus} : new AutoCloseable[] {tx, rx}) {
            try {
                if (end != null) {
                    end.close();
                }
            } catch (RamwayException e) {
                // What closing says on a bus whose peer is dead does not matter.
            }
        }
        bus = null;
        tx = null;
        rx = null;
        say("closed");
    }
}
