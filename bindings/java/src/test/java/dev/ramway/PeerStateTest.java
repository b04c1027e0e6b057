package dev.ramway;

import static dev.ramway.Rings.half;
import static dev.ramway.Rings.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.ramway.sys.Files;
import dev.ramway.sys.Mapping;
import dev.ramway.sys.Memfd;
import java.time.Duration;
import java.util.List;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * What a handle makes of a peer that ends, and of the moments in between: the peer's words are set by hand, and what the kernel
 * says of its lock is a function, in which the peer can go on while the kernel is asked.
 */
class PeerStateTest {
    private static final Options PAGE = Options.DEFAULT.withCapacity(Mapping.pageSize());

    /** One end of a ring whose other end is this test. */
    private static final class Staged implements Link, AutoCloseable {
        private final boolean isFinal;
        private final int peer;
        private Attachment at;
        RingEnd end;
        /** What the kernel says of the peer's lock. */
        BooleanSupplier alive = () -> true;
        int asked;

        Staged(Role role, boolean isFinal, int epoch, int flags) throws Exception {
            this.isFinal = isFinal;
            peer = role.other().line();
            SegmentSpec spec = SegmentSpec.ring(Mapping.pageSize(), 16, Mapping.pageSize());
            int fd = Memfd.create("ramway-test");
            try {
                SegmentMapping.allocate(fd, spec, -1);
                Files.writeAt(fd, SegmentHeader.format(spec), 0);
                at = Attachment.memory("staged", fd, Facts.BLOCK0, spec.blocks()[0], this, role, PAGE);
            } finally {
                Files.close(fd);
            }
            says(epoch, flags);
            end = role == Role.PRODUCER ? Sender.attach(at, PAGE) : Receiver.attach(at, PAGE);
        }

        /** The peer's words are these. */
        void says(int epoch, int flags) {
            half(at, peer + Facts.OFF_ROLE_EPOCH, epoch);
            half(at, peer + Facts.OFF_ROLE_FLAGS, flags);
        }

        /** A call that finds no message, or no room, and waits no longer than the first check. */
        void call() throws InterruptedException {
            if (end instanceof Sender tx) {
                while (tx.trySend(1, new byte[500])) {
                    asked = 0;
                }
                tx.send(1, 0, new byte[500], Duration.ZERO);
            } else {
                ((Receiver) end).recv(Duration.ZERO).close();
            }
        }

        @Override
        public boolean peerAlive(Role me) {
            asked++;
            return alive.getAsBoolean();
        }

        @Override
        public boolean vanished() {
            return false;
        }

        @Override
        public boolean isFinal() {
            return isFinal;
        }

        @Override
        public void close() {
            if (end != null && !end.isClosed()) {
                end.close();
            }
        }
    }

    /** Until the call asks the kernel, which it does every 100 ms. */
    private static RamwayException ending(Staged staged, ErrorKind kind) {
        return refused(kind, () -> {
            while (true) {
                try {
                    staged.call();
                } catch (TimedOutException again) {
                    Thread.sleep(1);
                }
            }
        });
    }

    @ParameterizedTest
    @EnumSource(Role.class)
    void aSuccessorThatAttachesWhileTheKernelIsAskedIsNotGone(Role role) throws Exception {
        try (Staged staged = new Staged(role, false, 1, 0)) {
            staged.alive = () -> {
                if (staged.asked >= 2) {
                    // Between the second check of the lock and whatever the handle makes of it.
                    staged.says(2, 0);
                }
                return false;
            };
            ending(staged, ErrorKind.PEER_DEAD);
            staged.alive = () -> true;
            assertEquals(2, staged.end.waitForPeer(Duration.ZERO));
        }
    }

    @ParameterizedTest
    @EnumSource(Role.class)
    void aPeerWhoseCloseWasMetIsGoneUntilTheEpochChanges(Role role) throws Exception {
        try (Staged staged = new Staged(role, false, 1, 0)) {
            staged.says(1, Facts.ROLE_CLOSED);
            ending(staged, ErrorKind.CLOSED);
            // A successor has the lock and has cleared the flags; it raises the epoch last.
            staged.says(1, 0);
            refused(ErrorKind.TIMED_OUT, () -> staged.end.waitForPeer(Duration.ZERO));
            staged.says(2, 0);
            assertEquals(2, staged.end.waitForPeer(Duration.ZERO));
        }
    }

    @ParameterizedTest
    @EnumSource(Role.class)
    void aPeerWhoseDeathWasMetIsGoneUntilTheEpochChanges(Role role) throws Exception {
        try (Staged staged = new Staged(role, false, 1, 0)) {
            staged.alive = () -> false;
            ending(staged, ErrorKind.PEER_DEAD);
            staged.alive = () -> true;
            refused(ErrorKind.TIMED_OUT, () -> staged.end.waitForPeer(Duration.ZERO));
            staged.says(2, 0);
            assertEquals(2, staged.end.waitForPeer(Duration.ZERO));
        }
    }

    @ParameterizedTest
    @EnumSource(Role.class)
    void aPeerOfABusThatClosesWhileTheKernelIsAskedHasClosed(Role role) throws Exception {
        try (Staged staged = new Staged(role, true, 1, 0)) {
            staged.alive = () -> {
                if (staged.asked >= 2) {
                    staged.says(1, Facts.ROLE_CLOSED);
                }
                return false;
            };
            refused(ErrorKind.CLOSED, () -> staged.end.waitForPeer(Duration.ZERO));
        }
    }

    @ParameterizedTest
    @EnumSource(Role.class)
    void aPeerOfABusThatAttachesAndClosesWhileTheKernelIsAskedHasClosed(Role role) throws Exception {
        try (Staged staged = new Staged(role, true, 0, 0)) {
            staged.alive = () -> {
                staged.says(1, Facts.ROLE_CLOSED);
                return false;
            };
            ending(staged, ErrorKind.CLOSED);
        }
        try (Staged staged = new Staged(role, true, 0, 0)) {
            staged.alive = () -> {
                staged.says(1, Facts.ROLE_CLOSED);
                return false;
            };
            // A wait for a peer has seen it, even though it is gone again.
            assertEquals(1, staged.end.waitForPeer(Duration.ZERO));
            refused(ErrorKind.CLOSED, () -> staged.end.waitForPeer(Duration.ZERO));
        }
    }

    @Test
    void aPeerOfABusThatHangsUpBeforeItAttachesIsDead() throws Exception {
        for (Role role : List.of(Role.PRODUCER, Role.CONSUMER)) {
            try (Staged staged = new Staged(role, true, 0, 0)) {
                staged.alive = () -> false;
                refused(ErrorKind.PEER_DEAD, () -> staged.end.waitForPeer(Duration.ZERO));
                ending(staged, ErrorKind.PEER_DEAD);
            }
        }
    }
}
