package dev.ramway;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.FutureTask;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/** format/vectors/rpc.json: what is said there is said in the README beside it. */
class RpcVectorsTest {
    private static final long CAPACITY = 4096;
    private static final Map<?, ?> ALL = load();

    private static Map<?, ?> load() {
        try {
            return (Map<?, ?>) Json.parse(Files.readString(Path.of("../../format/vectors/rpc.json")));
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    private static List<Map<?, ?>> list(Map<?, ?> of, String name) {
        List<Map<?, ?>> all = new ArrayList<>();
        if (of.get(name) instanceof List<?> found) {
            found.forEach(each -> all.add((Map<?, ?>) each));
        }
        return all;
    }

    private static byte[] hex(Object text) {
        return HexFormat.of().parseHex((String) text);
    }

    private static int number(Map<?, ?> of, String name) {
        return of.get(name) instanceof Long n ? n.intValue() : 0;
    }

    @Test
    void aNameHasItsNumber() {
        for (Map<?, ?> each : list(ALL, "method_ids")) {
            assertEquals(number(each, "number"), RpcClient.methodId((String) each.get("name")), each.toString());
        }
    }

    @TestFactory
    Stream<DynamicTest> servers() {
        return list(ALL, "servers").stream().map(each -> DynamicTest.dynamicTest((String) each.get("name"), () -> server(each)));
    }

    @TestFactory
    Stream<DynamicTest> clients() {
        return list(ALL, "clients").stream().map(each -> DynamicTest.dynamicTest((String) each.get("name"), () -> new Client(each).play()));
    }

    @TestFactory
    Stream<DynamicTest> handshakes() {
        return list(ALL, "handshakes").stream().map(each -> DynamicTest.dynamicTest((String) each.get("name"), () -> handshake(each)));
    }

    private static RpcRaw.Frame frame(Map<?, ?> f) {
        return new RpcRaw.Frame(((Long) f.get("type_id")).intValue(), Long.parseUnsignedLong((String) f.get("tag")), hex(f.get("hex")));
    }

    private static void send(RpcRaw raw, Object frames) throws InterruptedException {
        raw.send(((List<?>) frames).stream().map(each -> frame((Map<?, ?>) each)).toArray(RpcRaw.Frame[]::new));
    }

    /** Compares the next frame with what is expected; of a client CREDIT may come between. */
    private static void receive(RpcRaw raw, Map<?, ?> expected, boolean ofClient) throws InterruptedException {
        RpcRaw.Frame want = frame(expected);
        RpcRaw.Frame found = raw.receive();
        while (ofClient && found.typeId() == Facts.TYPE_ID_CREDIT && want.typeId() != Facts.TYPE_ID_CREDIT) {
            found = raw.receive();
        }
        assertEquals(Integer.toHexString(want.typeId()), Integer.toHexString(found.typeId()), found.toString());
        assertEquals(want.id(), found.id(), found.toString());
        if (expected.get("timeout_at_most") instanceof Long most) {
            ByteBuffer payload = ByteBuffer.wrap(found.payload()).order(ByteOrder.LITTLE_ENDIAN);
            long timeout = Integer.toUnsignedLong(payload.getInt(0));
            assertTrue(timeout > 0 && timeout <= most, timeout + " us");
            payload.putInt(0, 0);
        }
        if (expected.containsKey("any_text")) {
            assertTrue(RpcMethods.startsWith(found.payload(), want.payload()), found.toString());
        } else if (!java.util.Arrays.equals(want.payload(), found.payload())) {
            assertNotNull(expected.get("or"), want + " and not " + found);
            assertArrayEquals(hex(expected.get("or")), found.payload(), found.toString());
        }
    }

    private static void quiet(RpcRaw raw, long millis) {
        assertThrows(TimedOutException.class, () -> raw.bus.receiver().recv(Duration.ofMillis(millis)));
    }

    /** Method 1 is answered until the server drains; Ramway's own ping is answered all the time. */
    private static void untilDraining(RpcRaw raw, long from) throws InterruptedException {
        String answer;
        String refused;
        long id = from;
        do {
            raw.send(RpcRaw.call(id, 1, 0, RpcFrames.NONE));
            answer = raw.receive().toString();
            refused = RpcRaw.reply(id, RpcStatus.DRAINING, RpcFrames.NONE).toString();
            String done = RpcRaw.reply(id, RpcStatus.OK, RpcFrames.NONE).toString();
            assertTrue(answer.equals(refused) || answer.equals(done), answer);
            raw.send(RpcRaw.call(id + 1, Facts.METHOD_PING, 0, RpcFrames.NONE));
            assertEquals(RpcRaw.reply(id + 1, RpcStatus.OK, RpcFrames.NONE).toString(), raw.receive().toString());
            id += 2;
        } while (!answer.equals(refused));
    }

    private static void server(Map<?, ?> exchange) throws Exception {
        String path = Scratch.path(Scratch.name("rpc-vector")).toString();
        RpcServer.Builder builder = RpcServer.builder(path).capacity(CAPACITY).maxInFlight(number(exchange, "max_in_flight"));
        if (exchange.get("max_bytes") instanceof Long most) {
            builder.maxBytes(most);
        }
        try (RpcServer server = builder.bind()) {
            RpcMethods methods = new RpcMethods().register(server);
            Thread serving = Thread.ofPlatform().daemon().start(() -> {
                try {
                    server.serve();
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
            });
            Thread stopping = null;
            try (RpcRaw raw = RpcRaw.connect(path)) {
                for (Object each : (List<?>) exchange.get("steps")) {
                    Map<?, ?> step = each instanceof Map<?, ?> map ? map : Map.of(each, 0L);
                    String what = (String) step.keySet().iterator().next();
                    Object value = step.get(what);
                    switch (what) {
                        case "send" -> send(raw, value);
                        case "receive" -> receive(raw, (Map<?, ?>) value, false);
                        case "receive_all" -> receiveAll(raw, list(step, what));
                        case "quiet" -> quiet(raw, (Long) value);
                        case "until_draining" -> untilDraining(raw, (Long) value);
                        case "close" -> raw.bus.close();
                        case "hang_up" -> raw.bus.hangUp();
                        case "gate" -> methods.openGate();
                        case "shutdown" -> stopping = Thread.ofPlatform().daemon().start(() -> {
                            try {
                                server.shutdown(Duration.ofMillis((Long) value));
                            } catch (InterruptedException e) {
                                throw new IllegalStateException(e);
                            }
                        });
                        default -> throw new IllegalArgumentException(what);
                    }
                }
                switch ((String) exchange.get("end")) {
                    case "open" -> assertTrue(raw.bus.peerAlive());
                    case "Corrupt" -> assertThrows(PeerDeadException.class, () -> {
                        while (true) {
                            raw.receive();
                        }
                    });
                    case "Closed" -> assertThrows(ClosedException.class, raw::receive);
                    default -> assertEquals("PeerDead", exchange.get("end"));
                }
            }
            if (stopping == null) {
                // The next client is served.
                try (RpcClient next = RpcClient.connect(path)) {
                    next.ping();
                }
                methods.openGate();
                server.shutdown(Duration.ZERO);
            } else {
                stopping.join();
            }
            serving.join();
        }
    }

    private static void receiveAll(RpcRaw raw, List<Map<?, ?>> expected) throws InterruptedException {
        List<String> wanted = new ArrayList<>();
        List<String> found = new ArrayList<>();
        for (Map<?, ?> each : expected) {
            wanted.add(frame(each).toString());
            found.add(raw.receive().toString());
        }
        wanted.sort(null);
        found.sort(null);
        assertEquals(wanted, found);
    }

    /** A client that is played to. */
    private static final class Client {
        private final Map<?, ?> exchange;
        private final List<Object> calls = new ArrayList<>();
        /** What the program does already while the other side waits. */
        private final Map<Integer, FutureTask<Void>> ahead = new HashMap<>();

        Client(Map<?, ?> exchange) {
            this.exchange = exchange;
        }

        void play() throws Exception {
            String path = Scratch.path(Scratch.name("rpc-vector")).toString();
            try (Listener listener = RpcRaw.listen(path, CAPACITY, number(exchange, "max_in_flight"))) {
                FutureTask<RpcRaw> accepted = new FutureTask<>(() -> RpcRaw.accept(listener));
                Thread.ofPlatform().start(accepted);
                RpcClient.Builder builder = RpcClient.builder(path);
                if (exchange.get("max_buffered") instanceof Long most) {
                    builder.maxBuffered(most);
                }
                try (RpcClient client = builder.connect(); RpcRaw raw = accepted.get()) {
                    List<?> steps = (List<?>) exchange.get("steps");
                    for (int i = 0; i < steps.size(); i++) {
                        step(client, raw, steps, i);
                    }
                    String end = (String) exchange.get("end");
                    if (!end.equals("open")) {
                        RpcException e = assertThrows(RpcException.class, () -> client.call(1, new byte[0]));
                        assertEquals(end, e.error().orElseThrow().formatName());
                    }
                }
            }
        }

        private void step(RpcClient client, RpcRaw raw, List<?> steps, int i) throws Exception {
            Map<?, ?> step = steps.get(i) instanceof Map<?, ?> map ? map : Map.of(steps.get(i), 0L);
            String what = (String) step.keySet().iterator().next();
            Object value = step.get(what);
            switch (what) {
                case "send" -> send(raw, value);
                case "quiet" -> quiet(raw, (Long) value);
                case "close" -> raw.bus.close();
                case "hang_up" -> raw.bus.hangUp();
                case "receive" -> {
                    if (raw.bus.receiver().pendingBytes() == 0) {
                        goAhead(steps, i + 1);
                    }
                    receive(raw, (Map<?, ?>) value, true);
                }
                case "call" -> calls.add(start(client, (Map<?, ?>) value));
                case "cancel" -> cancel(calls.get(((Long) value).intValue() - 1));
                case "take", "outcome" -> {
                    FutureTask<Void> task = ahead.get(i);
                    if (task != null) {
                        task.get();
                    } else {
                        wait(what, (Map<?, ?>) value);
                    }
                }
                default -> throw new IllegalArgumentException(what);
            }
        }

        /** The program's next step, if it is one that waits. */
        private void goAhead(List<?> steps, int from) {
            for (int i = from; i < steps.size(); i++) {
                if (steps.get(i) instanceof Map<?, ?> step && Stream.of("call", "cancel", "quiet").anyMatch(step::containsKey)) {
                    return;
                }
                if (steps.get(i) instanceof Map<?, ?> step && (step.containsKey("take") || step.containsKey("outcome"))) {
                    String what = (String) step.keySet().iterator().next();
                    if (!ahead.containsKey(i)) {
                        FutureTask<Void> task = new FutureTask<>(() -> {
                            wait(what, (Map<?, ?>) step.get(what));
                            return null;
                        });
                        ahead.put(i, task);
                        Thread.ofVirtual().start(task);
                    }
                    return;
                }
            }
        }

        private static Object start(RpcClient client, Map<?, ?> call) {
            CallOptions options = CallOptions.DEFAULT.withMeta(hex(call.get("meta")));
            int micros = number(call, "timeout_us");
            if (micros != 0) {
                options = options.withTimeout(Duration.ofNanos(micros * 1000L));
            }
            int window = number(call, "window");
            byte[] body = hex(call.get("body"));
            int method = number(call, "method");
            return window == 0 ? client.start(method, body, options) : client.stream(method, body, options.withWindow(window));
        }

        private static void cancel(Object call) {
            if (call instanceof RpcPending pending) {
                pending.cancel();
            } else {
                ((RpcStream) call).cancel();
            }
        }

        private void wait(String what, Map<?, ?> expected) throws InterruptedException {
            Object call = calls.get(number(expected, "call") - 1);
            if (what.equals("take")) {
                for (Object each : (List<?>) expected.get("elements")) {
                    assertArrayEquals(hex(each), ((RpcStream) call).next(Scratch.LONG).body());
                }
                return;
            }
            List<String> elements = new ArrayList<>();
            try {
                RpcReply reply = null;
                if (call instanceof RpcStream stream) {
                    for (RpcReply each = stream.next(Scratch.LONG); each != null; each = stream.next(Scratch.LONG)) {
                        elements.add(HexFormat.of().formatHex(each.body()));
                    }
                } else {
                    reply = ((RpcPending) call).get(Scratch.LONG);
                }
                assertEquals(expected.get("name"), "Ok");
                if (expected.containsKey("body")) {
                    assertArrayEquals(hex(expected.get("body")), reply.body());
                    assertArrayEquals(hex(expected.get("meta")), reply.meta());
                }
            } catch (RpcException e) {
                assertEquals(expected.get("name"),
                        e.status().map(RpcStatus::formatName).orElseGet(() -> e.error().orElseThrow().formatName()), e.toString());
                if (expected.containsKey("may_have_run")) {
                    assertEquals(expected.get("may_have_run"), e.mayHaveRun());
                }
                if (expected.containsKey("text")) {
                    assertEquals(expected.get("text"), e.text());
                }
                if (expected.containsKey("code")) {
                    assertEquals(number(expected, "code"), e.code());
                }
            }
            if (expected.containsKey("elements")) {
                assertEquals(expected.get("elements"), elements);
            }
        }
    }

    private static void handshake(Map<?, ?> handshake) throws Exception {
        String path = Scratch.path(Scratch.name("rpc-hands")).toString();
        boolean ofServer = handshake.get("reader").equals("listener");
        String open = (String) ((Map<?, ?>) handshake.get("outcome")).get("open");
        if (ofServer) {
            try (RpcServer server = RpcServer.builder(path).capacity(CAPACITY).maxInFlight(16).bind()) {
                Thread.ofPlatform().daemon().start(() -> {
                    try {
                        server.serve();
                    } catch (InterruptedException e) {
                        throw new IllegalStateException(e);
                    }
                });
                try (RawSocket socket = RawSocket.connect(path)) {
                    converse(socket, handshake);
                    if (open.equals("ok")) {
                        while (server.clients() != 1) {
                            RawSocket.sleep(1);
                        }
                    } else {
                        assertEquals("refused", open);
                        assertEquals(0, server.clients());
                    }
                }
            }
            return;
        }
        try (RawSocket listening = RawSocket.listen(path)) {
            FutureTask<Void> peer = new FutureTask<>(() -> {
                try (RawSocket socket = listening.accept()) {
                    converse(socket, handshake);
                }
                return null;
            });
            Thread.ofPlatform().daemon().start(peer);
            String found = "ok";
            try (RpcClient client = RpcClient.builder(path).timeout(Scratch.LONG).connect()) {
                assertTrue(client.maxInFlight() > 0);
            } catch (RamwayException e) {
                found = e.kind().formatName();
            }
            assertEquals(open, found);
            peer.get();
        }
    }

    private static void converse(RawSocket socket, Map<?, ?> handshake) {
        for (Object each : (List<?>) handshake.get("steps")) {
            if (!(each instanceof Map<?, ?> step)) {
                assertEquals("end", each);
                assertEquals(0, socket.read(1).length);
            } else if (step.get("send") instanceof Map<?, ?> bytes) {
                int[] fds = list(bytes, "descriptors").stream().mapToInt(d -> memory((Map<?, ?>) d.get("memory"))).toArray();
                socket.send(hex(bytes.get("hex")), fds);
                for (int fd : fds) {
                    dev.ramway.sys.Files.close(fd);
                }
            } else {
                Map<?, ?> answer = (Map<?, ?>) step.get("receive");
                byte[] message = socket.read(Facts.HANDSHAKE_SIZE);
                assertEquals(Facts.HANDSHAKE_SIZE, message.length);
                ByteBuffer b = ByteBuffer.wrap(message).order(ByteOrder.LITTLE_ENDIAN);
                int type = b.getInt(Facts.HANDSHAKE_OFF_TYPE);
                assertEquals(number(answer, "type"), type);
                assertEquals(number(answer, "status"), b.getInt(Facts.HANDSHAKE_OFF_STATUS));
                boolean says = type == Facts.HANDSHAKE_HELLO || type == Facts.HANDSHAKE_WELCOME;
                assertEquals(says ? Facts.RPC_FEATURES : 0, b.getInt(Facts.HANDSHAKE_OFF_FEATURES_REQUIRED));
                assertEquals(type == Facts.HANDSHAKE_WELCOME ? 16 : 0, b.getInt(Facts.HANDSHAKE_OFF_MAX_IN_FLIGHT));
            }
        }
    }

    private static int memory(Map<?, ?> memory) {
        Map<?, ?> image = list(ALL, "images").stream().filter(each -> each.get("name").equals(memory.get("image"))).findFirst()
                .orElseThrow();
        byte[] bytes = new byte[number(image, "size")];
        for (Map<?, ?> run : list(image, "bytes")) {
            byte[] part = hex(run.get("hex"));
            System.arraycopy(part, 0, bytes, number(run, "at"), part.length);
        }
        return RawSocket.memory(bytes.length, RawSocket.SEAL_SEAL | RawSocket.SEAL_SHRINK | RawSocket.SEAL_GROW, bytes);
    }
}
