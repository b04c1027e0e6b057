package dev.ramway;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Iterator;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.zip.CRC32;

/** The methods that every language's program has: agents/README.md. */
final class RpcMethods {
    final AtomicInteger began = new AtomicInteger();
    /** How many of those that wait were told to stop. */
    final AtomicInteger cancelled = new AtomicInteger();
    private final CountDownLatch gate = new CountDownLatch(1);

    /** Has them all. */
    RpcMethods register(RpcServer server) {
        server.method(1, this::echo);
        server.method(2, request -> pattern(word(request, 0), word(request, 1)));
        server.method(3, request -> {
            began.incrementAndGet();
            byte[] body = request.body();
            throw request.fail(word(request, 0), new String(body, 4, body.length - 4, StandardCharsets.UTF_8));
        });
        server.stream(4, this::elements);
        server.method(5, request -> {
            began.incrementAndGet();
            try {
                gate.await();
            } catch (InterruptedException e) {
                if (request.isCancelled()) {
                    cancelled.incrementAndGet();
                }
                throw e;
            }
            request.replyMeta(request.meta());
            return request.body();
        });
        server.method(6, _ -> {
            throw new IllegalStateException("method 6");
        });
        server.method(7, request -> ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putInt(request.peerPid())
                .putInt(request.remaining().map(left -> (int) ((left.toNanos() + 999_999) / 1_000_000)).orElse(0)).array());
        server.method("Agent.Sum", request -> {
            CRC32 sum = new CRC32();
            sum.update(request.body());
            return ByteBuffer.allocate(4).order(ByteOrder.LITTLE_ENDIAN).putInt((int) sum.getValue()).array();
        });
        return this;
    }

    void openGate() {
        gate.countDown();
    }

    private byte[] echo(RpcRequest request) {
        began.incrementAndGet();
        request.replyMeta(request.meta());
        return request.body();
    }

    private static int word(RpcRequest request, int index) {
        return ByteBuffer.wrap(request.body()).order(ByteOrder.LITTLE_ENDIAN).getInt(4 * index);
    }

    static byte[] pattern(int first, int length) {
        byte[] bytes = new byte[length];
        for (int i = 0; i < length; i++) {
            bytes[i] = (byte) (first + i);
        }
        return bytes;
    }

    /** The body of a request of method 4. */
    static byte[] stream(int count, int size, int code, int seq) {
        return ByteBuffer.allocate(16).order(ByteOrder.LITTLE_ENDIAN).putInt(count).putInt(size).putInt(code).putInt(seq).array();
    }

    private Iterator<byte[]> elements(RpcRequest request) {
        began.incrementAndGet();
        int count = word(request, 0);
        int size = word(request, 1);
        int code = word(request, 2);
        int seq = word(request, 3);
        return new Iterator<>() {
            private int next;

            @Override
            public boolean hasNext() {
                if (next == count && code != 0) {
                    throw request.fail(code, "after " + count);
                }
                return next < count;
            }

            @Override
            public byte[] next() {
                return pattern(seq + next++, size);
            }
        };
    }

    /** Whether an array begins with another one. */
    static boolean startsWith(byte[] all, byte[] start) {
        return all.length >= start.length && Arrays.equals(Arrays.copyOf(all, start.length), start);
    }
}
