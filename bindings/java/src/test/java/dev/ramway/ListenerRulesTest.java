package dev.ramway;

import static dev.ramway.Rings.refused;
import static dev.ramway.Rings.says;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.ramway.sys.Errno;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A name and its path are one place, nobody's live socket is removed, and neither silence nor a want of descriptors stops it. */
class ListenerRulesTest {
    private static CompletableFuture<Bus> connecting(String name) {
        return connecting(name, ConnectOptions.DEFAULT.withTimeout(Scratch.LONG));
    }

    private static CompletableFuture<Bus> connecting(String name, ConnectOptions options) {
        CompletableFuture<Bus> result = new CompletableFuture<>();
        Thread.ofPlatform().daemon().start(() -> {
            try {
                result.complete(Bus.connect(name, options));
            } catch (Throwable t) {
                result.completeExceptionally(t);
            }
        });
        return result;
    }

    /** That a listener can be reached by that. */
    private static void serves(Listener listener, String name) throws Exception {
        CompletableFuture<Bus> other = connecting(name);
        try (Bus here = listener.accept(Scratch.LONG); Bus there = other.get(60, TimeUnit.SECONDS)) {
            assertTrue(here.peerAlive() && there.peerAlive());
        }
    }

    private static List<String> spellings(Path dir, String name) throws Exception {
        Path link = Scratch.path(Scratch.name("link"));
        Files.createSymbolicLink(link, dir);
        return List.of(dir + "/" + name + ".sock", dir + "/../" + dir.getFileName() + "/" + name + ".sock", link + "/" + name + ".sock",
                dir + "//" + name + ".sock");
    }

    /** In the Ramway directory, which the tests' own is. */
    @Test
    void aNameAndItsPathMeetAtOneLock() throws Exception {
        String name = Scratch.name("bell");
        for (String path : spellings(Scratch.DIR, name)) {
            try (Listener first = Listener.bind(name)) {
                refused(ErrorKind.ALREADY_EXISTS, () -> Listener.bind(path));
                refused(ErrorKind.ALREADY_EXISTS, () -> Listener.bind(first.path()));
                serves(first, name);
                serves(first, path);
            }
            try (Listener first = Listener.bind(path)) {
                refused(ErrorKind.ALREADY_EXISTS, () -> Listener.bind(name));
                serves(first, name);
            }
        }
        assertTrue(Files.notExists(Scratch.path(name)) && Files.notExists(Scratch.path(name + ".sock")));
        // These may be no names.
        for (String other : List.of("x.sock.sock", "x.lock.sock", ".x.sock")) {
            try (Listener listener = Listener.bind(Scratch.path(other).toString())) {
                assertTrue(Files.exists(Scratch.path(other + ".lock")));
                serves(listener, listener.path());
            }
        }
        // And another directory is another place.
        Path elsewhere = Scratch.directory("bell");
        try (Listener one = Listener.bind(name); Listener two = Listener.bind(elsewhere.resolve(name + ".sock").toString())) {
            serves(one, name);
            serves(two, two.path());
        }
    }

    /** In another process: listens until it is killed. */
    static void listen(Peer.Inside me, String[] args) {
        Listener listener = Listener.bind(args[0]);
        me.say(listener.path());
        me.hear();
    }

    @Test
    void whatAKilledListenerLeftIsTakenOver() throws Exception {
        String name = Scratch.name("killed");
        try (Peer peer = Peer.start("ListenerRulesTest.listen", name)) {
            String path = peer.hear();
            refused(ErrorKind.ALREADY_EXISTS, () -> Listener.bind(path));
            peer.kill();
            try (Listener next = Listener.bind(path)) {
                serves(next, name);
            }
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aLiveSocketOfAnotherProgramStays(boolean full) throws Exception {
        Path path = Scratch.directory("foreign").resolve("socket");
        List<SocketChannel> waiting = new ArrayList<>();
        try (ServerSocketChannel foreign = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
            UnixDomainSocketAddress address = UnixDomainSocketAddress.of(path);
            foreign.bind(address, 1);
            if (full) {
                for (int i = 0; i < 2; i++) {
                    waiting.add(SocketChannel.open(address));
                }
            }
            says(refused(ErrorKind.ALREADY_EXISTS, () -> Listener.bind(path.toString())), path,
                    "a program that does not hold Ramway's lock is listening there");
            if (!full) {
                // The look of the refused bind is in the backlog.
                foreign.accept().close();
                SocketChannel.open(address).close();
            }
        } finally {
            for (SocketChannel each : waiting) {
                each.close();
            }
        }
        // Now it is dead.
        try (Listener listener = Listener.bind(path.toString())) {
            serves(listener, path.toString());
        }
        assertTrue(Files.notExists(path));
    }

    @Test
    void anotherProgramsSocketIsNotRemovedAtTheEnd() throws Exception {
        Path path = Scratch.directory("renamed").resolve("socket");
        Listener listener = Listener.bind(path.toString());
        Files.move(path, path.resolveSibling("away"));
        try (ServerSocketChannel foreign = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
            foreign.bind(UnixDomainSocketAddress.of(path));
            listener.close();
            SocketChannel.open(UnixDomainSocketAddress.of(path)).close();
        }
    }

    /** The same of the creator over a dead listener's segment. */
    @Test
    void aDeadListenersNameIsFreeButALiveSocketStays() throws Exception {
        String name = Scratch.name("dead");
        try (Peer peer = Peer.start("ListenerRulesTest.listen", name)) {
            Path path = Path.of(peer.hear());
            peer.kill();
            Files.delete(path);
            try (ServerSocketChannel foreign = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
                foreign.bind(UnixDomainSocketAddress.of(path));
                refused(ErrorKind.ALREADY_EXISTS, () -> Listener.bind(name));
                assertTrue(Files.exists(path));
            }
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {64, 200})
    void silentConnectorsKeepNobodyOut(int silent) throws Exception {
        String name = Scratch.name("silent");
        List<RawSocket> sockets = new ArrayList<>();
        try (Listener listener = Listener.bind(name, ListenOptions.DEFAULT.withCapacity(1 << 14).withBacklog(400)
                .withHandshakeTimeout(Duration.ofSeconds(600)))) {
            for (int i = 0; i < silent; i++) {
                sockets.add(RawSocket.connect(listener.path()));
            }
            serves(listener, name);
            assertTrue(listener.refused() >= silent - 63, listener.refused() + " of " + silent);
            says(listener.lastRefusal().orElseThrow(), "this connector was silent the longest");
        } finally {
            sockets.forEach(RawSocket::close);
        }
    }

    /** In another process, with few descriptors: uses up all, accepts for a second and until it is told, lets some go, and accepts. */
    static void starve(Peer.Inside me, String[] args) throws Exception {
        // Classes are loaded from files.
        try {
            Receiver.open("nobody-made-this").close();
        } catch (RamwayException e) {
            me.say(Errno.text(2) + e.getMessage().length());
        }
        try (Listener listener = Listener.bind(args[0])) {
            serves(listener, args[0]);
            refused(ErrorKind.TIMED_OUT, () -> listener.accept(Duration.ofMillis(1)));
            AtomicBoolean enough = new AtomicBoolean();
            Thread.ofPlatform().daemon().start(() -> enough.set(me.hear() != null));
            // Everything on this way is loaded before there is nothing to load it by.
            says(Errors.os(Errno.EMFILE, "x"), "x");
            List<Integer> held = new ArrayList<>();
            for (int fd = dev.ramway.sys.Files.dup(0); fd >= 0; fd = dev.ramway.sys.Files.dup(0)) {
                held.add(fd);
            }
            me.say("starving");
            long start = System.nanoTime();
            int turns = 0;
            int told = 0;
            while (!enough.get() || System.nanoTime() - start < 1_000_000_000L) {
                turns++;
                try {
                    listener.accept(Duration.ofMillis(200)).close();
                } catch (TimedOutException e) {
                    continue;
                } catch (RamwayException e) {
                    told += e.errno().orElse(0) == Errno.EMFILE ? 1 : 0;
                }
            }
            long millis = (System.nanoTime() - start) / 1_000_000;
            held.forEach(dev.ramway.sys.Files::close);
            me.say(turns + " " + told + " " + millis);
            listener.accept(Scratch.LONG).close();
            me.say("served");
        }
    }

    @Test
    void withoutDescriptorsConnectorsAreToldAndNothingSpins() throws Exception {
        String name = Scratch.path(Scratch.name("starved")).toString();
        try (Peer peer = Peer.start(List.of("prlimit", "--nofile=128:128"), "ListenerRulesTest.starve", Map.of(), name)) {
            peer.hear();
            peer.expect("starving");
            long start = System.nanoTime();
            int refusals = 0;
            while (refusals == 0 || System.nanoTime() - start < 600_000_000L) {
                try (Bus bus = Bus.connect(name, ConnectOptions.DEFAULT.withTimeout(Scratch.LONG))) {
                    assertFalse(bus.peerAlive(), "it was served");
                } catch (RamwayException e) {
                    assertEquals(ErrorKind.NO_SPACE, e.kind(), e.getMessage());
                    says(e, "no memory or descriptors left");
                    refusals++;
                }
            }
            peer.tell("enough");
            String[] said = peer.hear().split(" ");
            long seconds = Long.parseLong(said[2]) / 1000 + 1;
            assertTrue(Integer.parseInt(said[0]) <= 30 * seconds, said[0] + " turns in " + said[2] + " ms");
            assertTrue(Integer.parseInt(said[1]) > 0, "accept never said so");
            CompletableFuture<Bus> served = connecting(name);
            peer.expect("served");
            served.get(60, TimeUnit.SECONDS).close();
            peer.finish();
        }
    }
}
