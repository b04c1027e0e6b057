package dev.ramway;

import java.util.function.UnaryOperator;

/** A server of this process's, with the methods that every language's program has. */
final class RpcServing implements AutoCloseable {
    final String path;
    final RpcServer server;
    final RpcMethods methods;
    private final Thread thread;

    RpcServing() {
        this(builder -> builder);
    }

    RpcServing(UnaryOperator<RpcServer.Builder> how) {
        path = Scratch.path(Scratch.name("rpc")).toString();
        server = how.apply(RpcServer.builder(path)).bind();
        methods = new RpcMethods().register(server);
        thread = Thread.ofPlatform().daemon().start(() -> {
            try {
                server.serve();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        });
    }

    RpcClient connect() throws InterruptedException {
        return RpcClient.builder(path).timeout(Scratch.LONG).connect();
    }

    /** Waits until what is asked is so. */
    static void until(java.util.function.BooleanSupplier condition, String what) throws InterruptedException {
        long began = System.nanoTime();
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() - began > Scratch.LONG.toNanos()) {
                throw new AssertionError("never: " + what);
            }
            Thread.sleep(1);
        }
    }

    @Override
    public void close() {
        methods.openGate();
        server.close();
        try {
            thread.join(Scratch.LONG);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
