package dev.ramway;

import static dev.ramway.Rings.refused;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.ramway.sys.Libc;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Flow;
import java.util.concurrent.FutureTask;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What an application does with a client and a server. */
class RpcTest {
    private static final byte[] NOTHING = {};

    private static RpcException fails(org.junit.jupiter.api.function.Executable call, RpcStatus status) {
        RpcException e = assertThrows(RpcException.class, call);
        assertEquals(status, e.status().orElse(null), e.toString());
        return e;
    }

    private static RpcException ends(org.junit.jupiter.api.function.Executable call, ErrorKind error) {
        RpcException e = assertThrows(RpcException.class, call);
        assertEquals(error, e.error().orElse(null), e.toString());
        return e;
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    @Test
    void aCallHasItsReply() throws Exception {
        try (RpcServing serving = new RpcServing(); RpcClient client = serving.connect()) {
            assertArrayEquals(bytes("hello"), client.call(1, bytes("hello")));
            RpcReply reply = client.call(1, bytes("x"), CallOptions.DEFAULT.withMeta(bytes("trace")));
            assertArrayEquals(bytes("trace"), reply.meta());
            assertArrayEquals(bytes("x"), reply.body());
            assertArrayEquals(NOTHING, client.call(1, NOTHING));
            client.ping();
            client.ping(Scratch.LONG);
            assertEquals(1024, client.maxInFlight());
            assertEquals(0, client.inFlight());
            assertEquals(ProcessHandle.current().pid(), client.peerPid());
            assertEquals(Libc.geteuid(), client.peerUid());
            assertEquals(1, serving.server.clients());
            assertFalse(client.isClosed());
            assertEquals(List.of(1, 2, 3, 4, 5, 6, 7, RpcClient.methodId("Agent.Sum")),
                    client.describe().stream().map(RpcClient.Method::number).toList());
            assertEquals("Agent.Sum", client.describe().getLast().name());
        }
    }

    @Test
    void anErrorSaysWhat() throws Exception {
        try (RpcServing serving = new RpcServing(); RpcClient client = serving.connect()) {
            byte[] request = {77, 0, 0, 0, 'n', 'o'};
            RpcException e = fails(() -> client.call(3, request), RpcStatus.APPLICATION);
            assertEquals(77, e.code());
            assertEquals("no", e.text());
            assertTrue(e.mayHaveRun());
            e = fails(() -> client.call(99, NOTHING), RpcStatus.NO_SUCH_METHOD);
            assertFalse(e.mayHaveRun());
            e = fails(() -> client.call(6, NOTHING), RpcStatus.HANDLER_FAILED);
            assertTrue(e.text().contains("method 6"), e.text());
            e = fails(() -> client.call(4, NOTHING), RpcStatus.HANDLER_FAILED);
            assertTrue(e.text().contains("method 4 replies with a stream"), e.text());
            try (RpcStream stream = client.stream(1, bytes("only"))) {
                assertArrayEquals(bytes("only"), stream.next().body());
                assertNull(stream.next());
            }
            fails(() -> client.call(2, RpcMethods.pattern(0, 8)), RpcStatus.REPLY_TOO_LARGE);
            e = ends(() -> client.call(1, new byte[1 << 20]), ErrorKind.TOO_LARGE);
            assertFalse(e.mayHaveRun());
            client.ping();
        }
    }

    @Test
    void aPlainPeerIsRefused() throws Exception {
        try (RpcServing serving = new RpcServing()) {
            refused(ErrorKind.ABI_MISMATCH, () -> Bus.connect(serving.path));
            serving.connect().close();
        }
        String plain = Scratch.path(Scratch.name("plain")).toString();
        try (Listener listener = Listener.bind(plain)) {
            FutureTask<Bus> accepting = new FutureTask<>(() -> listener.accept(Scratch.LONG));
            Thread.ofPlatform().daemon().start(accepting);
            refused(ErrorKind.ABI_MISMATCH, () -> RpcClient.connect(plain));
            Bus.connect(plain).close();
            accepting.get().close();
        }
    }

    @Test
    void oneClientBeyondIsBusy() throws Exception {
        try (RpcServing serving = new RpcServing(builder -> builder.maxClients(2)); RpcClient first = serving.connect()) {
            RpcClient second = serving.connect();
            refused(ErrorKind.BUSY, serving::connect);
            second.close();
            RpcServing.until(() -> serving.server.clients() == 1, "the second client's place is free");
            serving.connect().close();
            first.ping();
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3, 16})
    void aStreamHasItsElements(int window) throws Exception {
        CallOptions options = CallOptions.DEFAULT.withWindow(window);
        try (RpcServing serving = new RpcServing(); RpcClient client = serving.connect()) {
            for (int count : new int[] {0, 1, 2, 3, 100}) {
                try (RpcStream stream = client.stream(4, RpcMethods.stream(count, 10, 0, 5), options)) {
                    int k = 0;
                    for (RpcReply each : stream) {
                        assertArrayEquals(RpcMethods.pattern(5 + k++, 10), each.body());
                    }
                    assertEquals(count, k);
                    assertTrue(stream.isComplete());
                    assertNull(stream.next());
                    assertNull(stream.tryNext());
                }
            }
            try (RpcStream stream = client.stream(4, RpcMethods.stream(2, 10, 9, 0), options)) {
                stream.next();
                stream.next();
                RpcException e = fails(stream::next, RpcStatus.APPLICATION);
                assertEquals("9 after 2", e.code() + " " + e.text());
            }
        }
    }

    @Test
    void aSlowReaderStopsItsOwnStreamOnly() throws Exception {
        AtomicInteger asked = new AtomicInteger();
        AtomicInteger closed = new AtomicInteger();
        final class Endless implements Iterator<byte[]>, AutoCloseable {
            @Override
            public boolean hasNext() {
                return true;
            }

            @Override
            public byte[] next() {
                asked.incrementAndGet();
                return NOTHING;
            }

            @Override
            public void close() {
                closed.incrementAndGet();
            }
        }
        try (RpcServing serving = new RpcServing(builder -> builder.handlers(1)); RpcClient client = serving.connect()) {
            serving.server.stream(10, _ -> new Endless());
            RpcStream slow = client.stream(10, NOTHING, CallOptions.DEFAULT.withWindow(4));
            RpcServing.until(() -> asked.get() == 5, "as many elements as the window, and the one that waits");
            // It holds no thread of the pool, which has one.
            assertArrayEquals(bytes("x"), client.call(1, bytes("x")));
            try (RpcStream other = client.stream(4, RpcMethods.stream(100, 8, 0, 0))) {
                int count = 0;
                for (RpcReply each : other) {
                    count += each.body().length / 8;
                }
                assertEquals(100, count);
            }
            assertEquals(5, asked.get());
            for (int i = 0; i < 4; i++) {
                slow.next();
            }
            RpcServing.until(() -> asked.get() > 5, "credit");
            slow.close();
            RpcServing.until(() -> closed.get() == 1, "its iterator is closed");
            client.ping();
        }
    }

    @Test
    void aCallEndsByItsClock() throws Exception {
        try (RpcServing serving = new RpcServing(); RpcClient client = serving.connect()) {
            // A busy machine needs more than the first limit to begin the call: then it was not run, and says so.
            RpcException e;
            Duration limit = Duration.ofMillis(10);
            do {
                limit = limit.multipliedBy(2);
                CallOptions soon = CallOptions.DEFAULT.withTimeout(limit);
                e = assertThrows(RpcException.class, () -> client.call(5, NOTHING, soon));
                assertTrue(e.error().orElse(null) == ErrorKind.TIMED_OUT || e.status().orElse(null) == RpcStatus.TIMED_OUT, e.toString());
            } while (!e.mayHaveRun() && limit.compareTo(Scratch.LONG) < 0);
            assertTrue(e.mayHaveRun(), e.toString());
            assertEquals(ErrorKind.TIMED_OUT, e.error().orElse(null), e.toString());
            // Its place is free once its handler has ended.
            RpcServing.until(() -> {
                try {
                    client.ping();
                    return client.inFlight() == 0;
                } catch (InterruptedException interrupted) {
                    throw new IllegalStateException(interrupted);
                }
            }, "the final reply of a call that timed out");
            e = ends(() -> client.call(1, NOTHING, CallOptions.DEFAULT.withTimeout(Duration.ZERO)), ErrorKind.TIMED_OUT);
            assertFalse(e.mayHaveRun());
            assertThrows(RamwayException.class, () -> CallOptions.DEFAULT.withTimeout(Duration.ofSeconds(-1)));
            client.call(1, NOTHING, CallOptions.DEFAULT.withTimeout(Duration.ofSeconds(Long.MAX_VALUE)));
        }
    }

    @Test
    void aHandlerSeesWhatIsLeftAndThatItWasCancelled() throws Exception {
        CountDownLatch began = new CountDownLatch(1);
        CountDownLatch saw = new CountDownLatch(1);
        try (RpcServing serving = new RpcServing(); RpcClient client = serving.connect()) {
            serving.server.method("Wait", request -> {
                assertEquals(RpcClient.methodId("Wait"), request.method());
                assertEquals(Libc.geteuid(), request.peerUid());
                assertFalse(request.isCancelled());
                began.countDown();
                while (!request.isCancelled()) {
                    // Spins: an interrupt tells it too.
                    Thread.onSpinWait();
                }
                saw.countDown();
                return NOTHING;
            });
            serving.server.method("Left", request -> {
                Duration left = request.remaining().orElseThrow();
                assertTrue(left.compareTo(Duration.ZERO) > 0 && left.compareTo(Duration.ofSeconds(100)) <= 0);
                return NOTHING;
            });
            client.call(RpcClient.methodId("Left"), NOTHING, CallOptions.DEFAULT.withTimeout(Duration.ofSeconds(100)));
            RpcPending pending = client.start(RpcClient.methodId("Wait"), NOTHING);
            assertNull(pending.tryGet());
            began.await();
            assertThrows(TimedOutException.class, () -> pending.get(Duration.ofMillis(1)));
            assertFalse(pending.isDone());
            pending.cancel();
            assertTrue(pending.isDone());
            RpcException e = fails(pending::get, RpcStatus.CANCELLED);
            assertTrue(e.mayHaveRun());
            saw.await();
        }
    }

    @Test
    void anInterruptCancelsACallAndNoPending() throws Exception {
        try (RpcServing serving = new RpcServing(); RpcClient client = serving.connect()) {
            Thread.currentThread().interrupt();
            assertThrows(InterruptedException.class, () -> client.call(5, NOTHING));
            FutureTask<RpcReply> waiting = new FutureTask<>(() -> {
                try (RpcPending pending = client.start(5, bytes("kept"))) {
                    Thread.currentThread().interrupt();
                    assertThrows(InterruptedException.class, pending::get);
                    serving.methods.openGate();
                    return pending.get();
                }
            });
            Thread.ofVirtual().start(waiting);
            assertArrayEquals(bytes("kept"), waiting.get().body());
        }
    }

    @Test
    void aFutureIsCompletedAndCancels() throws Exception {
        try (RpcServing serving = new RpcServing(); RpcClient client = serving.connect()) {
            CompletableFuture<RpcReply> reply = client.start(1, bytes("f")).toCompletableFuture();
            assertArrayEquals(bytes("f"), reply.get(60, TimeUnit.SECONDS).body());
            CompletableFuture<RpcReply> none = client.start(99, NOTHING).toCompletableFuture();
            ExecutionException e = assertThrows(ExecutionException.class, none::get);
            assertEquals(RpcStatus.NO_SUCH_METHOD, ((RpcException) e.getCause()).status().orElseThrow());
            CompletableFuture<RpcReply> never = client.start(5, NOTHING).toCompletableFuture();
            RpcServing.until(() -> serving.methods.began.get() == 2, "it runs");
            never.cancel(true);
            assertThrows(CancellationException.class, never::join);
            RpcServing.until(() -> serving.methods.cancelled.get() == 1, "the server was told");
        }
    }

    @Test
    void aSubscriberHasTheElements() throws Exception {
        try (RpcServing serving = new RpcServing(); RpcClient client = serving.connect()) {
            for (int code : new int[] {0, 3}) {
                List<Integer> found = new ArrayList<>();
                CompletableFuture<String> end = new CompletableFuture<>();
                client.stream(4, RpcMethods.stream(50, 1, code, 0)).publisher().subscribe(new Flow.Subscriber<>() {
                    private Flow.Subscription subscription;

                    @Override
                    public void onSubscribe(Flow.Subscription subscription) {
                        this.subscription = subscription;
                        subscription.request(1);
                    }

                    @Override
                    public void onNext(RpcReply element) {
                        found.add((int) element.body()[0]);
                        // The end comes without a request.
                        if (found.size() < 50) {
                            subscription.request(1);
                        }
                    }

                    @Override
                    public void onError(Throwable t) {
                        end.complete(t instanceof RpcException e ? e.text() : t.toString());
                    }

                    @Override
                    public void onComplete() {
                        end.complete("complete");
                    }
                });
                assertEquals(code == 0 ? "complete" : "after 50", end.get(60, TimeUnit.SECONDS));
                assertEquals(50, found.size());
            }
        }
    }

    @Test
    void aMethodHasOneHandler() {
        try (RpcServing serving = new RpcServing()) {
            refused(ErrorKind.ALREADY_EXISTS, () -> serving.server.method(1, RpcRequest::body));
            refused(ErrorKind.ALREADY_EXISTS, () -> serving.server.stream(1, _ -> List.<byte[]>of().iterator()));
            refused(ErrorKind.ALREADY_EXISTS, () -> serving.server.method("Agent.Sum", RpcRequest::body));
            refused(ErrorKind.INVALID_ARGUMENT, () -> serving.server.method(Facts.METHOD_PING, RpcRequest::body));
            refused(ErrorKind.INVALID_ARGUMENT, () -> serving.server.method("a\nb", RpcRequest::body));
            refused(ErrorKind.INVALID_ARGUMENT, () -> RpcServer.builder("x").maxInFlight(0));
            refused(ErrorKind.INVALID_ARGUMENT, () -> RpcServer.builder("x").maxClients(0));
            refused(ErrorKind.INVALID_ARGUMENT, () -> RpcServer.builder("x").maxBytes(0));
            refused(ErrorKind.INVALID_ARGUMENT, () -> RpcServer.builder("x").capacity(0));
            refused(ErrorKind.INVALID_ARGUMENT, () -> RpcClient.builder("x").maxBuffered(0));
            refused(ErrorKind.INVALID_ARGUMENT, () -> CallOptions.DEFAULT.withWindow(0));
        }
    }

    @Test
    void anExecutorRunsHandlersAndMayRefuse() throws Exception {
        ExecutorService two = Executors.newFixedThreadPool(2);
        try (RpcServing serving = new RpcServing(builder -> builder.executor(two).handlers(2)); RpcClient client = serving.connect()) {
            List<RpcPending> all = new ArrayList<>();
            for (int i = 0; i < 100; i++) {
                all.add(client.start(1, new byte[] {(byte) i}));
            }
            for (int i = 0; i < 100; i++) {
                assertEquals(i, all.get(i).get().body()[0]);
            }
        } finally {
            two.shutdownNow();
        }
        try (RpcServing serving = new RpcServing(builder -> builder.executor(_ -> {
            throw new RejectedExecutionException();
        })); RpcClient client = serving.connect()) {
            assertFalse(fails(() -> client.call(1, NOTHING), RpcStatus.OVERLOADED).mayHaveRun());
            client.ping();
        }
    }

    @Test
    void oneClientHasHalfOfThePlacesWhileOthersWait() throws Exception {
        try (RpcServing serving = new RpcServing(builder -> builder.handlers(4)); RpcClient greedy = serving.connect();
                RpcClient other = serving.connect()) {
            List<RpcPending> waiting = new ArrayList<>();
            for (int i = 0; i < 20; i++) {
                waiting.add(greedy.start(5, NOTHING));
            }
            RpcServing.until(() -> serving.methods.began.get() == 4, "alone it has all places");
            RpcPending one = other.start(1, bytes("other"));
            other.ping();
            // A place that becomes free is the other's, though 16 calls came before.
            waiting.getFirst().cancel();
            assertArrayEquals(bytes("other"), one.get(Scratch.LONG).body());
            serving.methods.openGate();
            for (RpcPending each : waiting.subList(1, 20)) {
                each.get();
            }
        }
    }

    @Test
    void whatIsBufferedIsBounded() throws Exception {
        try (RpcServing serving = new RpcServing();
                RpcClient client = RpcClient.builder(serving.path).maxBuffered(1000).connect();
                RpcStream stream = client.stream(4, RpcMethods.stream(100, 300, 0, 0))) {
            client.ping();
            RpcServing.until(() -> {
                try {
                    client.ping();
                    return client.inFlight() == 0;
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
            }, "the stream is cancelled");
            ends(stream::next, ErrorKind.TOO_LARGE);
            client.call(1, new byte[900]);
        }
    }

    @Test
    void aClosedClientEndsItsCalls() throws Exception {
        try (RpcServing serving = new RpcServing()) {
            RpcClient client = serving.connect();
            List<CompletableFuture<RpcReply>> all = new ArrayList<>();
            for (int i = 0; i < 10; i++) {
                all.add(client.start(5, NOTHING).toCompletableFuture());
            }
            RpcServing.until(() -> serving.methods.began.get() == 10, "they run");
            client.close();
            client.close();
            for (CompletableFuture<RpcReply> each : all) {
                RpcException e = (RpcException) assertThrows(ExecutionException.class, each::get).getCause();
                assertEquals(ErrorKind.CLOSED, e.error().orElseThrow());
                assertTrue(e.mayHaveRun());
            }
            assertTrue(client.isClosed());
            ends(() -> client.call(1, NOTHING), ErrorKind.CLOSED);
            RpcServing.until(() -> serving.methods.cancelled.get() == 10 && serving.server.clients() == 0, "they are cancelled");
        }
    }

    @Test
    void aServerDrains() throws Exception {
        try (RpcServing serving = new RpcServing(); RpcClient client = serving.connect()) {
            RpcPending running = client.start(5, bytes("last"));
            RpcServing.until(() -> serving.methods.began.get() == 1, "it runs");
            FutureTask<Void> stopping = new FutureTask<>(() -> {
                serving.server.shutdown(Scratch.LONG);
                return null;
            });
            Thread.ofPlatform().daemon().start(stopping);
            RpcException e;
            while (true) {
                try {
                    client.call(1, NOTHING);
                } catch (RpcException draining) {
                    e = draining;
                    break;
                }
            }
            assertEquals(RpcStatus.DRAINING, e.status().orElseThrow());
            assertFalse(e.mayHaveRun());
            client.ping();
            serving.methods.openGate();
            assertArrayEquals(bytes("last"), running.get().body());
            stopping.get();
            assertFalse(ends(() -> client.call(1, NOTHING), ErrorKind.CLOSED).mayHaveRun());
        }
    }

    @Test
    void aServersLimitCancelsWhatRuns() throws Exception {
        for (int attempt = 0; attempt < 100; attempt++) {
            try (RpcServing serving = new RpcServing(); RpcClient client = serving.connect()) {
                RpcPending running = client.start(5, NOTHING);
                RpcServing.until(() -> serving.methods.began.get() == 1, "it runs");
                serving.server.shutdown(Duration.ofMillis(10));
                RpcException e = assertThrows(RpcException.class, running::get);
                assertTrue(e.mayHaveRun(), e.toString());
                // A server does not wait long for what it has cancelled: on a busy machine its client may be left as by one that died.
                if (e.error().orElse(null) != ErrorKind.PEER_DEAD) {
                    assertEquals(RpcStatus.CANCELLED, e.status().orElse(null), e.toString());
                    ends(() -> client.call(1, NOTHING), ErrorKind.CLOSED);
                    return;
                }
            }
        }
        throw new AssertionError("no cancelled call ended in time");
    }
}
