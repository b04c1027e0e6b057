import dev.ramway.RamwayException;
import dev.ramway.RpcRequest;
import dev.ramway.RpcServer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.Iterator;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import java.util.zip.CRC32;

/** A server of RPC with the programs' methods, on a thread of its own, and its commands. */
final class RpcServe {
    private final RpcServer server;
    private final Thread serving;
    private final CountDownLatch gate = new CountDownLatch(1);
    private final AtomicLong began = new AtomicLong();
    private final AtomicLong ended = new AtomicLong();
    private final AtomicLong cancelled = new AtomicLong();
    private final AtomicLong elements = new AtomicLong();
    /** What serving or shutting down failed with. */
    private volatile Exception failure;
    private Thread stopping;

    RpcServe(String name, Line line) {
        long capacity = line.number("capacity", 65536);
        RpcServer.Builder builder = RpcServer.builder(name).capacity(capacity).align((int) line.number("align", 16))
                .waitMode(line.waitMode());
        if (line.has("max_clients")) {
            builder.maxClients((int) line.number("max_clients", 0));
        }
        if (line.has("max_in_flight")) {
            builder.maxInFlight((int) line.number("max_in_flight", 0));
        }
        if (line.has("max_bytes")) {
            builder.maxBytes(line.number("max_bytes", 0));
        }
        String bare = line.text("bare", "no");
        line.end();
        if (!bare.equals("no")) {
            // What is measured: nothing that counts, and the defaults.
            server = builder.bind();
            if (bare.equals("inline")) {
                server.inlineMethod(1, RpcRequest::body);
            } else {
                server.method(1, RpcRequest::body);
            }
        } else {
            server = builder.handlers(Integer.MAX_VALUE).bind();
            methods();
        }
        serving = begin(server::serve);
        Agent.say("attached pid=" + ProcessHandle.current().pid() + " capacity=" + capacity);
    }

    private Thread begin(Line.Silent work) {
        return Thread.ofPlatform().daemon().start(() -> {
            try {
                work.call();
            } catch (RamwayException | InterruptedException e) {
                failure = e;
            }
        });
    }

    /** A handler's work. */
    private interface Work {
        byte[] handle(RpcRequest request) throws Exception;
    }

    private void method(int number, Work work) {
        server.method(number, request -> counted(request, work));
    }

    private byte[] counted(RpcRequest request, Work work) throws Exception {
        began.incrementAndGet();
        try {
            return work.handle(request);
        } finally {
            ended.incrementAndGet();
        }
    }

    private void methods() {
        method(1, RpcServe::echo);
        method(2, request -> bytes(word(request, 0), word(request, 1)));
        method(3, request -> {
            byte[] body = request.body();
            throw request.fail(word(request, 0), new String(body, 4, body.length - 4, StandardCharsets.UTF_8));
        });
        server.stream(4, Elements::new);
        method(5, request -> {
            try {
                gate.await();
            } catch (InterruptedException e) {
                if (request.isCancelled()) {
                    cancelled.incrementAndGet();
                }
                throw e;
            }
            return echo(request);
        });
        method(6, request -> {
            throw new IllegalStateException("method 6");
        });
        method(7, request -> {
            long left = request.remaining().map(each -> (each.toNanos() + 999_999) / 1_000_000).orElse(0L);
            return words(request.peerPid(), (int) left);
        });
        server.method(RpcCalls.SUM, request -> counted(request, each -> {
            CRC32 sum = new CRC32();
            sum.update(each.body());
            return words((int) sum.getValue());
        }));
    }

    private static byte[] echo(RpcRequest request) {
        request.replyMeta(request.meta());
        return request.body();
    }

    private static int word(RpcRequest request, int index) {
        return ByteBuffer.wrap(request.body()).order(ByteOrder.LITTLE_ENDIAN).getInt(4 * index);
    }

    static byte[] words(int... words) {
        ByteBuffer bytes = ByteBuffer.allocate(4 * words.length).order(ByteOrder.LITTLE_ENDIAN);
        Arrays.stream(words).forEach(bytes::putInt);
        return bytes.array();
    }

    /** The bytes that begin with this one. */
    static byte[] bytes(long first, int length) {
        byte[] bytes = new byte[length];
        for (int i = 0; i < length; i++) {
            bytes[i] = (byte) (first + i);
        }
        return bytes;
    }

    /** Method 4. */
    private final class Elements implements Iterator<byte[]>, AutoCloseable {
        private final RpcRequest request;
        private final long count;
        private final int size;
        private final int code;
        private final int seq;
        private long next;
        private boolean done;

        Elements(RpcRequest request) {
            this.request = request;
            count = Integer.toUnsignedLong(word(request, 0));
            size = word(request, 1);
            code = word(request, 2);
            seq = word(request, 3);
            began.incrementAndGet();
        }

        @Override
        public boolean hasNext() {
            done = next == count;
            if (done && code != 0) {
                throw request.fail(code, "after " + count);
            }
            return !done;
        }

        @Override
        public byte[] next() {
            elements.incrementAndGet();
            return bytes(seq + next++, size);
        }

        @Override
        public void close() {
            if (!done && request.isCancelled()) {
                cancelled.incrementAndGet();
            }
            ended.incrementAndGet();
        }
    }

    /** Whether it is still open after a command. */
    boolean obey(Line line) throws InterruptedException {
        switch (line.word) {
            case "served" -> {
                line.end();
                long over = ended.get();
                long begun = began.get();
                Agent.say("served began=" + begun + " running=" + (begun - over) + " cancelled=" + cancelled + " elements=" + elements
                        + " clients=" + server.clients());
            }
            case "gate" -> {
                line.end();
                gate.countDown();
                Agent.say("opened");
            }
            case "shutdown" -> {
                Duration limit = Duration.ofMillis(line.number("limit", 0));
                line.end();
                stopping = begin(() -> server.shutdown(limit));
                Agent.say("draining");
            }
            case "join" -> {
                line.end();
                if (join()) {
                    Agent.say("ended");
                }
            }
            case "close" -> {
                line.end();
                if (stopping == null) {
                    stopping = begin(() -> server.shutdown(Duration.ZERO));
                }
                if (join()) {
                    Agent.say("closed");
                }
                return false;
            }
            default -> throw new Line.RefusedException(line.word + " is no command of a server");
        }
        return true;
    }

    /** Waits for its end; false: it has failed, and that is said. */
    private boolean join() throws InterruptedException {
        serving.join();
        if (stopping != null) {
            stopping.join();
        }
        if (failure instanceof RamwayException e) {
            Agent.say("error " + Agent.named(e.kind()) + " text=" + e.getMessage());
            return false;
        }
        return true;
    }
}
