package dev.ramway;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.ramway.RpcRaw.Frame;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Peers that do what no correct one does: only their own connection ends. What single frames do, {@link RpcVectorsTest} has. */
class RpcHostileTest {
    private static final byte[] NOTHING = {};

    /** Its connection is ended without a word. */
    private static void isHungUp(RpcRaw raw) {
        assertThrows(PeerDeadException.class, () -> {
            while (true) {
                raw.receive();
            }
        });
    }

    @Test
    void aHostileClientDisturbsNoOther() throws Exception {
        try (RpcServing serving = new RpcServing(); RpcClient honest = serving.connect()) {
            RpcPending running = honest.start(5, new byte[] {1});
            Frame[][] all = {
                {RpcRaw.call(2, 1, 0, NOTHING)},
                {RpcRaw.call(1, 5, 0, NOTHING), RpcRaw.call(1, 5, 0, NOTHING)},
                {RpcRaw.call(1, 5, 0, NOTHING), RpcRaw.credit(1, 1)},
                {RpcRaw.cancel(1)},
                {RpcRaw.reply(1, RpcStatus.OK, NOTHING)},
                {new Frame(7, 1, NOTHING)},
                {new Frame(Facts.TYPE_ID_CALL, 1, new byte[15])},
            };
            for (Frame[] frames : all) {
                try (RpcRaw raw = RpcRaw.connect(serving.path)) {
                    raw.send(frames);
                    isHungUp(raw);
                }
                assertArrayEquals(new byte[] {2}, honest.call(1, new byte[] {2}));
            }
            RpcServing.until(() -> serving.server.clients() == 1, "their places are free");
            serving.methods.openGate();
            assertArrayEquals(new byte[] {1}, running.get().body());
        }
    }

    /** Its calls beyond the limit are answered, and while it does not read the answers it is not read. */
    @Test
    void aClientThatOnlyAsksTakesNoMemory() throws Exception {
        try (RpcServing serving = new RpcServing(builder -> builder.capacity(4096).maxInFlight(10)); RpcClient honest = serving.connect();
                RpcRaw raw = RpcRaw.connect(serving.path)) {
            AtomicBoolean full = new AtomicBoolean();
            FutureTask<Long> asking = new FutureTask<>(() -> {
                long id = 1;
                while (true) {
                    Frame frame = RpcRaw.call(id, 5, 0, new byte[40]);
                    if (!raw.bus.sender().putNow(frame.typeId(), id, null, NOTHING, frame.payload())) {
                        full.set(true);
                        try {
                            raw.send(frame);
                        } catch (RamwayException e) {
                            return id;
                        }
                    }
                    id++;
                    if (id == 5000) {
                        return id;
                    }
                }
            });
            Thread.ofPlatform().daemon().start(asking);
            RpcServing.until(() -> full.get() && serving.methods.began.get() == 10, "the ring is full, and ten calls run");
            assertArrayEquals(new byte[] {2}, honest.call(1, new byte[] {2}));
            // Once it reads, each call beyond the limit has its answer.
            long next = 11;
            while (next < 5000) {
                RpcFrames.Reply reply = raw.reply();
                assertEquals(next++, reply.id());
                assertEquals(RpcStatus.OVERLOADED, reply.status());
            }
            asking.get();
            // The ten, and the other client's.
            assertEquals(11, serving.methods.began.get());
        }
    }

    /** Replies that nobody reads are bounded, and the rest of the server goes on. */
    @Test
    void aClientThatDoesNotReadIsLeft() throws Exception {
        try (RpcServing serving = new RpcServing(builder -> builder.capacity(4096)); RpcClient honest = serving.connect();
                RpcRaw raw = RpcRaw.connect(serving.path)) {
            // Two of the ten replies fill the ring: of what the other calls end with, at most one fits, even if it is a cancellation.
            for (long id = 1; id <= 10; id++) {
                raw.send(RpcRaw.call(id, 2, 0, RpcMethods.stream(0, 2000, 0, 0)));
            }
            RpcServing.until(() -> raw.bus.receiver().pendingBytes() >= 2 * 2032, "two replies are in the ring");
            assertArrayEquals(new byte[] {2}, honest.call(1, new byte[] {2}));
            raw.send(RpcRaw.call(11, Facts.METHOD_PING, 0, NOTHING), RpcRaw.cancel(11), RpcRaw.cancel(3));
            honest.ping();
            RpcServing.until(() -> raw.bus.sender().pendingBytes() == 0, "all are taken");
            serving.server.shutdown(Duration.ofMillis(10));
            isHungUp(raw);
            RpcException closed = assertThrows(RpcException.class, honest::ping);
            assertEquals(ErrorKind.CLOSED, closed.error().orElseThrow());
        }
    }

    @Test
    void aParkedReplyBeyondTheLimitIsTooLarge() throws Exception {
        try (RpcServing serving = new RpcServing(builder -> builder.capacity(4096)); RpcRaw raw = RpcRaw.connect(serving.path)) {
            for (long id = 1; id <= 10; id++) {
                raw.send(RpcRaw.call(id, 2, 0, RpcMethods.stream(0, 3000, 0, 0)));
            }
            // Only once all have ended.
            RpcServing.until(() -> raw.bus.sender().pendingBytes() == 0, "all are taken");
            raw.send(RpcRaw.call(11, Facts.METHOD_PING, 0, NOTHING));
            int whole = 0;
            int tooLarge = 0;
            for (int i = 0; i < 11; i++) {
                RpcFrames.Reply reply = raw.reply();
                whole += reply.body().length == 3000 ? 1 : 0;
                tooLarge += reply.status() == RpcStatus.REPLY_TOO_LARGE ? 1 : 0;
            }
            // How many were parked while this read says nothing; what was is bounded by maxBytes.
            assertEquals(10, whole + tooLarge);
            assertTrue(whole >= 6, whole + " whole");
        }
    }

    /** A call and its cancellation again and again: a place is free only when the handler has ended. */
    @Test
    void callsThatAreCancelledAtOnceBeginNoMoreHandlers() throws Exception {
        try (RpcServing serving = new RpcServing(builder -> builder.maxInFlight(4)); RpcRaw raw = RpcRaw.connect(serving.path)) {
            CompletableFuture<Void> let = new CompletableFuture<>();
            java.util.concurrent.atomic.AtomicInteger running = new java.util.concurrent.atomic.AtomicInteger();
            java.util.concurrent.atomic.AtomicInteger most = new java.util.concurrent.atomic.AtomicInteger();
            serving.server.method(10, _ -> {
                most.accumulateAndGet(running.incrementAndGet(), Math::max);
                try {
                    // It does not stop when it is told to.
                    let.join();
                } finally {
                    running.decrementAndGet();
                }
                return NOTHING;
            });
            for (long id = 1; id <= 4; id++) {
                raw.send(RpcRaw.call(id, 10, 0, NOTHING));
            }
            RpcServing.until(() -> running.get() == 4, "four run");
            for (long id = 1; id <= 4; id++) {
                raw.send(RpcRaw.cancel(id));
            }
            for (long id = 5; id <= 200; id++) {
                raw.send(RpcRaw.call(id, 10, 0, NOTHING), RpcRaw.cancel(id));
                RpcFrames.Reply reply = raw.reply();
                assertEquals(id, reply.id());
                assertEquals(RpcStatus.OVERLOADED, reply.status());
            }
            let.complete(null);
            for (int i = 0; i < 4; i++) {
                assertEquals(RpcStatus.CANCELLED, raw.reply().status());
            }
            assertEquals(4, most.get());
            raw.send(RpcRaw.call(201, Facts.METHOD_PING, 0, NOTHING));
            assertEquals(RpcStatus.OK, raw.reply().status());
        }
    }

    /** A hostile server's answer to the second of two calls. */
    static Stream<List<Frame>> answers() {
        return Stream.of(
                List.of(RpcRaw.reply(3, RpcStatus.OK, NOTHING)),
                List.of(RpcRaw.reply(1, RpcStatus.OK, NOTHING), RpcRaw.reply(1, RpcStatus.OK, NOTHING)),
                List.of(RpcRaw.element(1, NOTHING)),
                List.of(RpcRaw.element(2, NOTHING), RpcRaw.element(2, NOTHING)),
                List.of(RpcRaw.reply(2, RpcStatus.OK, new byte[1])),
                List.of(RpcRaw.call(1, 1, 0, NOTHING)),
                List.of(RpcRaw.cancel(1)),
                List.of(new Frame(Facts.TYPE_ID_REPLY, 1, new byte[3])),
                List.of(new Frame(0, 1, NOTHING)));
    }

    @ParameterizedTest
    @MethodSource("answers")
    void aHostileServerEndsAllCalls(List<Frame> frames) throws Exception {
        String path = Scratch.path(Scratch.name("rpc-hostile")).toString();
        try (Listener listener = RpcRaw.listen(path, 4096, 2)) {
            FutureTask<RpcRaw> accepting = new FutureTask<>(() -> RpcRaw.accept(listener));
            Thread.ofPlatform().daemon().start(accepting);
            try (RpcClient client = RpcClient.connect(path); RpcRaw raw = accepting.get()) {
                List<CompletableFuture<RpcReply>> all = new ArrayList<>();
                RpcPending first = client.start(1, NOTHING);
                RpcStream stream = client.stream(4, NOTHING, CallOptions.DEFAULT.withWindow(1));
                RpcPending queued = client.start(1, NOTHING);
                all.add(first.toCompletableFuture());
                raw.send(frames.toArray(Frame[]::new));
                RpcException e = assertThrows(RpcException.class, () -> {
                    for (RpcReply each : stream) {
                        assertEquals(0, each.body().length);
                    }
                });
                assertEquals(ErrorKind.CORRUPT, e.error().orElseThrow(), e.toString());
                assertTrue(e.mayHaveRun());
                e = assertThrows(RpcException.class, queued::get);
                assertEquals(ErrorKind.CORRUPT, e.error().orElseThrow());
                // Where the first call's place was free before the end, it was sent.
                assertTrue(!e.mayHaveRun() || frames.size() == 2);
                try {
                    all.getFirst().get();
                } catch (ExecutionException failed) {
                    assertEquals(ErrorKind.CORRUPT, ((RpcException) failed.getCause()).error().orElseThrow());
                }
                assertTrue(client.isClosed());
                e = assertThrows(RpcException.class, client::ping);
                assertFalse(e.mayHaveRun());
                RpcServing.until(() -> !raw.bus.peerAlive(), "the server's side sees a hang-up");
            }
        }
    }

    /** A server that never answers and never reads: calls end by their clocks, and the client holds what its callers gave it. */
    @Test
    void aSilentServerStopsNobody() throws Exception {
        String path = Scratch.path(Scratch.name("rpc-silent")).toString();
        try (Listener listener = RpcRaw.listen(path, 4096, 1000)) {
            FutureTask<RpcRaw> accepting = new FutureTask<>(() -> RpcRaw.accept(listener));
            Thread.ofPlatform().daemon().start(accepting);
            try (RpcClient client = RpcClient.connect(path); RpcRaw raw = accepting.get()) {
                CallOptions soon = CallOptions.DEFAULT.withTimeout(Duration.ofMillis(30));
                List<RpcPending> all = new ArrayList<>();
                for (int i = 0; i < 50; i++) {
                    all.add(client.start(1, new byte[500], soon));
                }
                int withdrawn = 0;
                for (RpcPending each : all) {
                    RpcException e = assertThrows(RpcException.class, each::get);
                    assertEquals(ErrorKind.TIMED_OUT, e.error().orElseThrow());
                    withdrawn += e.mayHaveRun() ? 0 : 1;
                }
                assertTrue(withdrawn >= 42, withdrawn + " did not fit into the ring");
                assertEquals(50 - withdrawn, client.inFlight());
                // Once it reads: the calls, and then what is owed.
                for (int i = 0; i < 50 - withdrawn; i++) {
                    assertEquals(Facts.TYPE_ID_CALL, raw.receive().typeId());
                }
                for (int i = 0; i < 50 - withdrawn; i++) {
                    assertEquals(Facts.TYPE_ID_CANCEL, raw.receive().typeId());
                }
            }
        }
    }
}
