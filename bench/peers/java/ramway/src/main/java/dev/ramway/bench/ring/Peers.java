package dev.ramway.bench.ring;

import dev.ramway.bench.About;
import dev.ramway.bench.Burst;
import dev.ramway.bench.Measured;
import dev.ramway.bench.Mechanism;
import dev.ramway.bench.Setup;
import java.util.List;

/** Ramway by its Java port: two named rings between two processes of Java, and one to or from a program in Rust. */
public final class Peers {
    private Peers() {}

    public static List<Mechanism> mechanisms() {
        return List.of(new Both(), new FromRust(), new ToRust());
    }

    private static About about(String name, String what) {
        return new About(name, "ramway", false, what, "");
    }

    private static final class Both implements Mechanism {
        @Override
        public About about() {
            return Peers.about("ring-java", "two named rings: reserve, commit, recv; together: commitUnflushed, flush, recvBatch");
        }

        @Override
        public boolean can(Burst burst) {
            return burst.plain() && (burst.test().equals("rtt") || burst.test().equals("one-way"));
        }

        @Override
        public Opening open(Setup setup, boolean leads) throws Exception {
            Rings rings = leads ? Rings.create(setup) : null;
            return () -> rings == null ? Rings.open(setup) : rings;
        }
    }

    private static final class FromRust implements Mechanism {
        @Override
        public About about() {
            return Peers.about("ring-rust-java", "from a sender in Rust: recv; together: recvBatch");
        }

        @Override
        public boolean can(Burst burst) {
            return burst.streams();
        }

        @Override
        public Measured pair(Setup setup, Burst burst) throws Exception {
            return WithRust.sends(setup);
        }
    }

    private static final class ToRust implements Mechanism {
        @Override
        public About about() {
            return Peers.about("ring-java-rust", "to a receiver in Rust: reserve, commit; together: commitUnflushed, flush");
        }

        @Override
        public boolean can(Burst burst) {
            // A batch must not go over the last of the messages that differ.
            return burst.streams() && Integer.bitCount(burst.batch()) == 1;
        }

        @Override
        public Measured pair(Setup setup, Burst burst) throws Exception {
            return WithRust.receives(setup);
        }
    }
}
