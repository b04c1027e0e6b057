package dev.ramway.bench.ring;

import dev.ramway.bench.Burst;
import dev.ramway.bench.End;
import dev.ramway.bench.Half;
import dev.ramway.bench.Measured;
import dev.ramway.bench.Outcome;
import dev.ramway.bench.RustSide;
import dev.ramway.bench.Setup;
import dev.ramway.bench.Usage;

/** A stream between this process and the program in Rust that started it. */
final class WithRust implements Measured {
    private final End end;
    private final RustSide other;
    private final boolean leads;

    private WithRust(End end, RustSide other, boolean leads) {
        this.end = end;
        this.other = other;
        this.leads = leads;
    }

    /** {@return with a sender in Rust} */
    static WithRust sends(Setup setup) throws Exception {
        Usage.settle(setup.cpu(false), setup.realtime());
        return new WithRust(Rings.receiver(setup), new RustSide("send", Rings.there(setup), setup), false);
    }

    /** {@return with a receiver in Rust} */
    static WithRust receives(Setup setup) throws Exception {
        Usage.settle(setup.cpu(true), setup.realtime());
        return new WithRust(Rings.sender(setup), new RustSide("receive", Rings.there(setup), setup), true);
    }

    @Override
    public long[] pids() {
        long self = ProcessHandle.current().pid();
        return leads ? new long[] {self, other.pid()} : new long[] {other.pid(), self};
    }

    @Override
    public Outcome burst(Burst burst) throws Exception {
        var half = new Half(end, leads, burst, true);
        Usage.forgetPeak();
        other.ask(burst);
        if (leads) {
            other.hear("receiving");
            half.run();
            Object received = other.hear("received");
            long elapsed = RustSide.time(received, "ended_ns") - half.began;
            return new Outcome(elapsed, burst.count(), half.samples(), half.used, Usage.Used.of(received));
        }
        half.run();
        Object sent = other.hear("sent");
        long elapsed = half.ended - RustSide.time(sent, "began_ns");
        return new Outcome(elapsed, burst.count(), half.samples(), Usage.Used.of(sent), half.used);
    }

    @Override
    public void stop() throws Exception {
        other.stop();
        end.close();
    }
}
