package dev.ramway.bench.grpc;

import dev.ramway.bench.About;
import dev.ramway.bench.Burst;
import dev.ramway.bench.End;
import dev.ramway.bench.Mechanism;
import dev.ramway.bench.Setup;
import io.grpc.CallOptions;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import io.grpc.Server;
import io.grpc.ServerServiceDefinition;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.grpc.netty.shaded.io.netty.channel.EventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.epoll.EpollDomainSocketChannel;
import io.grpc.netty.shaded.io.netty.channel.epoll.EpollEventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.epoll.EpollServerDomainSocketChannel;
import io.grpc.netty.shaded.io.netty.channel.unix.DomainSocketAddress;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.ServerCalls;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CountDownLatch;

/**
 * grpc-java over a Unix socket by Netty's epoll: a unary call for each request that blocks, with a thread for the socket of each
 * side and the defaults otherwise. A body is bytes on both sides: no Protocol Buffers, which would cost more.
 */
public final class Peers {
    private static final VarHandle WORD = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

    private static final MethodDescriptor<byte[], byte[]> METHOD = MethodDescriptor.<byte[], byte[]>newBuilder()
            .setType(MethodDescriptor.MethodType.UNARY).setFullMethodName("bench.Answers/Ask")
            .setRequestMarshaller(new Bytes()).setResponseMarshaller(new Bytes()).build();

    private Peers() {}

    public static List<Mechanism> mechanisms() {
        return List.of(new Calls());
    }

    /** Takes bytes as they are. */
    private static final class Bytes implements MethodDescriptor.Marshaller<byte[]> {
        @Override
        public InputStream stream(byte[] bytes) {
            return new ByteArrayInputStream(bytes);
        }

        @Override
        public byte[] parse(InputStream stream) {
            try {
                return stream.readAllBytes();
            } catch (IOException cause) {
                throw new UncheckedIOException(cause);
            }
        }
    }

    private static final class Calls implements Mechanism {
        @Override
        public About about() {
            return new About("grpc-java", "peer", true, "gRPC on a Unix socket, blocking calls, Netty's epoll; bytes",
                    About.versionOf(NettyServerBuilder.class));
        }

        @Override
        public boolean can(Burst burst) {
            return burst.calls();
        }

        @Override
        public Opening open(Setup setup, boolean leads) throws Exception {
            var address = new DomainSocketAddress(Path.of(setup.directory(), "grpc.sock").toFile());
            return leads ? () -> new Calling(address) : serving(address);
        }

        /** The leading side connects when the following one has done this. */
        private static Opening serving(DomainSocketAddress address) throws IOException {
            var serving = new Serving(address);
            return () -> serving;
        }
    }

    /** What neither side does. */
    private abstract static class Side implements End {
        final EventLoopGroup group = new EpollEventLoopGroup(1);

        @Override
        public void send(int size, long n) {
            throw new UnsupportedOperationException("a side of calls sends no message");
        }

        @Override
        public long receive(int size) {
            throw new UnsupportedOperationException("a side of calls receives no message");
        }

        @Override
        public int receive(int size, int max, Sum sum) {
            throw new UnsupportedOperationException("a side of calls receives no message");
        }
    }

    private static final class Calling extends Side {
        private final ManagedChannel channel;

        Calling(DomainSocketAddress address) {
            channel = NettyChannelBuilder.forAddress(address).eventLoopGroup(group).channelType(EpollDomainSocketChannel.class)
                    .usePlaintext().build();
        }

        @Override
        public long call(int size, long n) {
            byte[] request = new byte[size];
            for (int at = 0; at < size; at += 8) {
                WORD.set(request, at, n + at / 8);
            }
            byte[] reply = ClientCalls.blockingUnaryCall(channel, METHOD, CallOptions.DEFAULT, request);
            if (reply.length != size) {
                throw new IllegalStateException("a reply of " + reply.length + " bytes instead of " + size);
            }
            long sum = 0;
            for (int at = 0; at < size; at += 8) {
                sum += (long) WORD.get(reply, at);
            }
            return sum;
        }

        @Override
        public void close() {
            channel.shutdownNow();
            group.shutdownGracefully();
        }
    }

    private static final class Serving extends Side {
        private final Server server;
        private long left;
        private volatile CountDownLatch done = new CountDownLatch(0);

        Serving(DomainSocketAddress address) throws IOException {
            var service = ServerServiceDefinition.builder("bench.Answers").addMethod(METHOD,
                    ServerCalls.asyncUnaryCall((byte[] request, io.grpc.stub.StreamObserver<byte[]> reply) -> {
                        reply.onNext(request);
                        reply.onCompleted();
                        answered();
                    })).build();
            server = NettyServerBuilder.forAddress(address).bossEventLoopGroup(group).workerEventLoopGroup(group)
                    .channelType(EpollServerDomainSocketChannel.class).addService(service).build().start();
        }

        /** One call after the other comes, and in whichever thread: each after the one before. */
        private synchronized void answered() {
            if (--left == 0) {
                done.countDown();
            }
        }

        @Override
        public synchronized void serve(long count) {
            left = count;
            done = new CountDownLatch(1);
        }

        @Override
        public void served() throws InterruptedException {
            done.await();
        }

        @Override
        public void close() {
            server.shutdownNow();
            group.shutdownGracefully();
        }
    }
}
