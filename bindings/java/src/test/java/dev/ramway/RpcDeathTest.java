package dev.ramway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import org.junit.jupiter.api.Test;

/** Real processes, killed and stopped by signals, with calls in flight. */
class RpcDeathTest {
    private static final byte[] NOTHING = {};

    /** Serves at args[0], and says how many handlers have begun when it is asked. */
    static void serve(Peer.Inside me, String[] args) {
        RpcServer server = RpcServer.builder(args[0]).maxInFlight(Integer.parseInt(args[1])).bind();
        RpcMethods methods = new RpcMethods().register(server);
        Thread.ofPlatform().daemon().start(() -> {
            try {
                server.serve();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        });
        me.say("ready");
        while (me.hear() != null) {
            me.say(Integer.toString(methods.began.get()));
        }
    }

    private static void awaitBegan(Peer server, int count) {
        do {
            server.tell("how many?");
        } while (Integer.parseInt(server.hear()) < count);
    }

    @Test
    void callsOfAKilledServerMayHaveRun() throws Exception {
        String path = Scratch.path(Scratch.name("rpc-kill")).toString();
        try (Peer server = Peer.start("RpcDeathTest.serve", path, "20")) {
            server.expect("ready");
            try (RpcClient client = RpcClient.connect(path)) {
                assertEquals(server.pid(), client.peerPid());
                List<CompletableFuture<RpcReply>> all = new ArrayList<>();
                for (int i = 0; i < 30; i++) {
                    all.add(client.start(5, NOTHING).toCompletableFuture());
                }
                RpcStream stream = client.stream(4, RpcMethods.stream(5, 8, 0, 0));
                awaitBegan(server, 20);
                server.kill();
                int mayHaveRun = 0;
                for (CompletableFuture<RpcReply> each : all) {
                    RpcException e = (RpcException) assertThrows(ExecutionException.class, each::get).getCause();
                    assertEquals(ErrorKind.PEER_DEAD, e.error().orElseThrow());
                    mayHaveRun += e.mayHaveRun() ? 1 : 0;
                }
                assertEquals(20, mayHaveRun, "those beyond the limit were never sent");
                RpcException e = assertThrows(RpcException.class, stream::next);
                assertEquals(ErrorKind.PEER_DEAD, e.error().orElseThrow());
                assertFalse(e.mayHaveRun());
                e = assertThrows(RpcException.class, () -> client.call(1, NOTHING));
                assertFalse(e.mayHaveRun());
            }
            // A server of the same name takes its place; the client makes another connection.
            try (RpcServer next = RpcServer.bind(path)) {
                new RpcMethods().register(next);
                Thread.ofPlatform().daemon().start(() -> {
                    try {
                        next.serve();
                    } catch (InterruptedException e) {
                        throw new IllegalStateException(e);
                    }
                });
                try (RpcClient again = RpcClient.connect(path)) {
                    again.ping();
                }
            }
        }
    }

    /** Makes args[1] calls that wait and a stream that waits for credit, and says so. */
    static void call(Peer.Inside me, String[] args) throws InterruptedException {
        RpcClient client = RpcClient.connect(args[0]);
        for (int i = 0; i < Integer.parseInt(args[1]); i++) {
            client.start(5, NOTHING);
        }
        client.stream(4, RpcMethods.stream(100, 8, 0, 0), CallOptions.DEFAULT.withWindow(2)).next();
        me.say("called");
        me.hear();
    }

    @Test
    void callsOfAKilledClientAreCancelled() throws Exception {
        try (RpcServing serving = new RpcServing(); RpcClient other = serving.connect();
                Peer client = Peer.start("RpcDeathTest.call", serving.path, "50")) {
            client.expect("called");
            RpcPending running = other.start(5, new byte[] {9});
            RpcServing.until(() -> serving.methods.began.get() == 52, "all run");
            client.kill();
            RpcServing.until(() -> serving.methods.cancelled.get() == 50, "its calls are told to stop");
            RpcServing.until(() -> serving.server.clients() == 1, "its place is free");
            serving.methods.openGate();
            assertEquals(9, running.get().body()[0]);
        }
    }

    @Test
    void aStoppedClientHoldsUpNobodyAndGoesOn() throws Exception {
        try (RpcServing serving = new RpcServing(); RpcClient other = serving.connect();
                Peer client = Peer.start("RpcDeathTest.call", serving.path, "5")) {
            client.expect("called");
            client.signal("STOP");
            for (int i = 0; i < 100; i++) {
                other.call(1, NOTHING);
            }
            assertEquals(2, serving.server.clients(), "a stopped process is alive");
            long began = System.nanoTime();
            serving.server.shutdown(Duration.ofMillis(10));
            assertTrue(System.nanoTime() - began < Scratch.LONG.toNanos());
            RpcException e = assertThrows(RpcException.class, () -> other.call(1, NOTHING));
            assertEquals(ErrorKind.CLOSED, e.error().orElseThrow());
            client.signal("CONT");
            client.tell("done");
            client.finish();
        }
    }
}
