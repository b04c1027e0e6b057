package dev.ramway.bench;

import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.OutputStream;
import java.util.Optional;
import java.util.concurrent.SynchronousQueue;

/** The whole of the following process. Its standard input has bursts, its standard output what it did. */
final class Follower {
    private final SynchronousQueue<Optional<Burst>> bursts = new SynchronousQueue<>();
    private final DataOutputStream say;
    private volatile boolean busy = true;

    private Follower(OutputStream out) {
        say = new DataOutputStream(new BufferedOutputStream(out, 1 << 16));
    }

    static void run(Mechanism mechanism, Setup setup, OutputStream out) throws Exception {
        var follower = new Follower(out);
        try {
            follower.all(mechanism, setup);
        } catch (Exception cause) {
            follower.say(Main.why(cause));
            throw cause;
        }
    }

    private void all(Mechanism mechanism, Setup setup) throws Exception {
        Usage.settle(setup.cpu(false), setup.realtime());
        var listener = new Thread(this::listen, "orders");
        listener.setDaemon(true);
        listener.start();
        Mechanism.Opening opening = mechanism.open(setup, false);
        say("");
        try (End end = opening.finish()) {
            say("");
            for (;;) {
                busy = false;
                Optional<Burst> told = bursts.take();
                if (told.isEmpty()) {
                    return;
                }
                busy = true;
                half(end, told.get());
            }
        }
    }

    private void half(End end, Burst burst) throws Exception {
        var half = new Half(end, false, burst);
        Usage.forgetPeak();
        say("");
        half.run();
        long[] samples = half.samples();
        say.writeUTF("");
        say.writeLong(half.ended);
        say.writeInt(samples.length);
        for (long sample : samples) {
            say.writeLong(sample);
        }
        half.used.write(say);
        say.flush();
    }

    /** A thread of its own, which notices the end of the leading process while a loop polls. */
    private void listen() {
        var in = new DataInputStream(System.in);
        try {
            for (;;) {
                bursts.put(Optional.of(Burst.read(in)));
            }
        } catch (EOFException cause) {
            if (busy) {
                Runtime.getRuntime().halt(1);
            }
            try {
                bursts.put(Optional.empty());
            } catch (InterruptedException never) {
                Runtime.getRuntime().halt(1);
            }
        } catch (IOException | InterruptedException cause) {
            Runtime.getRuntime().halt(1);
        }
    }

    private void say(String failure) throws IOException {
        say.writeUTF(failure);
        say.flush();
    }
}
