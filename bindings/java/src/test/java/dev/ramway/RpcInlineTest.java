package dev.ramway;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Handlers that run where their client's calls are read; and the metadata of a stream's elements. */
class RpcInlineTest {
    private static final int INLINE = 100;

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static RpcException fails(org.junit.jupiter.api.function.Executable call, RpcStatus status) {
        RpcException e = assertThrows(RpcException.class, call);
        assertEquals(status, e.status().orElse(null), e.toString());
        return e;
    }

    @Test
    void anInlineHandlerAnswersAsAnyOther() throws Exception {
        try (RpcServing serving = new RpcServing(); RpcClient client = serving.connect()) {
            List<Thread> threads = new ArrayList<>();
            serving.server.inlineMethod(INLINE, request -> {
                threads.add(Thread.currentThread());
                request.replyMeta(request.meta());
                return request.body();
            }).inlineMethod("Inline.Fails", request -> {
                throw request.fail(7, "no");
            }).inlineMethod(INLINE + 1, request -> {
                throw new IllegalStateException("unexpected");
            }).inlineMethod(INLINE + 2, request -> null);
            for (int size : new int[] {0, 1, 5000, 300_000}) {
                RpcReply reply = client.call(INLINE, new byte[size], CallOptions.DEFAULT.withMeta(bytes("trace")));
                assertArrayEquals(new byte[size], reply.body());
                assertArrayEquals(bytes("trace"), reply.meta());
            }
            // One thread, which is none of a handler's own.
            assertEquals(1, threads.stream().distinct().count());
            assertFalse(threads.getFirst().isVirtual());
            // A stream of one element, which has the metadata.
            try (RpcStream stream = client.stream(INLINE, bytes("one"), CallOptions.DEFAULT.withMeta(bytes("trace")))) {
                RpcReply element = stream.next();
                assertArrayEquals(bytes("one"), element.body());
                assertArrayEquals(bytes("trace"), element.meta());
                assertNull(stream.next());
            }
            assertEquals(7, fails(() -> client.call(RpcClient.methodId("Inline.Fails"), bytes("x")), RpcStatus.APPLICATION).code());
            fails(() -> client.call(INLINE + 1, bytes("x")), RpcStatus.HANDLER_FAILED);
            fails(() -> client.call(INLINE + 2, bytes("x")), RpcStatus.HANDLER_FAILED);
            assertEquals(ErrorKind.ALREADY_EXISTS,
                    assertThrows(RamwayException.class, () -> serving.server.inlineMethod(INLINE, r -> r.body())).kind());
            client.ping();
        }
    }

    /** Its time is over while it runs: then it has no reply, and the next call is begun after it. */
    @Test
    void anInlineHandlersTimeEndsWhenItReturns() throws Exception {
        try (RpcServing serving = new RpcServing(); RpcClient client = serving.connect()) {
            List<String> order = new ArrayList<>();
            serving.server.inlineMethod(INLINE, request -> {
                while (!request.isCancelled()) {
                    Thread.onSpinWait();
                }
                order.add("first");
                return request.body();
            }).inlineMethod(INLINE + 1, request -> {
                order.add("second");
                return request.body();
            });
            // A busy machine may need more than the first limit to begin it: then it was not run.
            Duration limit = Duration.ofMillis(50);
            RpcException e;
            do {
                limit = limit.multipliedBy(2);
                CallOptions soon = CallOptions.DEFAULT.withTimeout(limit);
                e = assertThrows(RpcException.class, () -> client.call(INLINE, bytes("x"), soon));
                // Answered once what came before it has ended: whether it ran is known.
                client.ping();
            } while (order.isEmpty() && limit.compareTo(Scratch.LONG) < 0);
            assertEquals(ErrorKind.TIMED_OUT, e.error().orElse(null), e.toString());
            assertArrayEquals(bytes("y"), client.call(INLINE + 1, bytes("y")));
            assertEquals(List.of("first", "second"), order);
        }
    }

    @Test
    void anInlineHandlerHoldsUpItsClientOnly() throws Exception {
        try (RpcServing serving = new RpcServing(); RpcClient held = serving.connect(); RpcClient free = serving.connect()) {
            CountDownLatch began = new CountDownLatch(1);
            CountDownLatch goOn = new CountDownLatch(1);
            serving.server.inlineMethod(INLINE, request -> {
                began.countDown();
                goOn.await();
                return request.body();
            }).inlineMethod(INLINE + 1, RpcRequest::body);
            RpcPending pending = held.start(INLINE, bytes("held"));
            began.await();
            for (int i = 0; i < 100; i++) {
                assertArrayEquals(bytes("free"), free.call(INLINE + 1, bytes("free")));
            }
            assertFalse(pending.isDone());
            goOn.countDown();
            assertArrayEquals(bytes("held"), pending.get().body());
        }
    }

    /** Elements have the metadata that was set before them, also those that have waited for credit. */
    @Test
    void elementsHaveMetadata() throws Exception {
        try (RpcServing serving = new RpcServing(); RpcClient client = serving.connect()) {
            serving.server.stream(INLINE, request -> {
                Iterator<Integer> numbers = IntStream.range(0, 20).iterator();
                return new Iterator<>() {
                    @Override
                    public boolean hasNext() {
                        return numbers.hasNext();
                    }

                    @Override
                    public byte[] next() {
                        int n = numbers.next();
                        if (n % 2 == 0) {
                            request.replyMeta(bytes("of " + n));
                        }
                        return bytes("element " + n);
                    }
                };
            });
            for (int window : new int[] {1, 3, 16}) {
                try (RpcStream stream = client.stream(INLINE, bytes("x"), CallOptions.DEFAULT.withWindow(window))) {
                    for (int n = 0; n < 20; n++) {
                        RpcReply element = stream.next();
                        assertArrayEquals(bytes("element " + n), element.body());
                        assertArrayEquals(bytes(n % 2 == 0 ? "of " + n : ""), element.meta());
                    }
                    assertNull(stream.next());
                    assertTrue(stream.isComplete());
                }
            }
        }
    }
}
