package dev.ramway.bench;

import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.LongStream;

/** The leading process's end, and the following process. */
final class Pair {
    private final End end;
    private final Process follower;
    private final DataInputStream heard;
    private final DataOutputStream say;
    private volatile boolean ending;

    Pair(Mechanism mechanism, Setup setup, String order) throws Exception {
        // Before anything is opened: threads that the mechanism starts stay where their process is.
        Usage.settle(setup.cpu(true), setup.realtime());
        Mechanism.Opening opening = mechanism.open(setup, true);
        // The same program in the same way, whatever options this one was given.
        var self = ProcessHandle.current().info();
        List<String> command = new ArrayList<>(List.of(self.command().orElseThrow()));
        command.addAll(List.of(self.arguments().orElseThrow()));
        var builder = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT);
        builder.environment().put(Main.VARIABLE, order);
        follower = builder.start();
        heard = new DataInputStream(follower.getInputStream());
        say = new DataOutputStream(new BufferedOutputStream(follower.getOutputStream()));
        follower.onExit().thenRun(() -> {
            // It says itself why, on standard error. The leading side may poll for what nobody will ever send.
            if (!ending) {
                Main.answer("failed", "the second process died");
                Runtime.getRuntime().halt(1);
            }
        });
        hear();
        end = opening.finish();
        hear();
    }

    private void hear() throws IOException {
        String failure = heard.readUTF();
        if (!failure.isEmpty()) {
            ending = true;
            throw new IllegalStateException(failure);
        }
    }

    long[] pids() {
        return new long[] {ProcessHandle.current().pid(), follower.pid()};
    }

    Outcome burst(Burst burst) throws Exception {
        var half = new Half(end, true, burst);
        Usage.forgetPeak();
        burst.write(say);
        say.flush();
        hear();
        half.run();
        hear();
        long ended = Math.max(half.ended, heard.readLong());
        long[] samples = new long[heard.readInt()];
        for (int i = 0; i < samples.length; i++) {
            samples[i] = heard.readLong();
        }
        Usage.Used theirs = Usage.Used.read(heard);
        samples = LongStream.concat(LongStream.of(half.samples()), LongStream.of(samples)).toArray();
        return new Outcome(ended - half.began, burst.count(), samples, half.used, theirs);
    }

    void stop() throws Exception {
        ending = true;
        say.close();
        int status = follower.waitFor();
        end.close();
        if (status != 0) {
            throw new IllegalStateException("the second process ended with " + status);
        }
    }
}
