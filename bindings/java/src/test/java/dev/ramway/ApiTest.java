package dev.ramway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** docs/api/java.txt says what there is: every call, option and default of every language has its line. */
class ApiTest {
    private static final Path PAGES = Path.of("../../docs/api");
    /** What users call; of the others the class is enough. */
    private static final List<Class<?>> MAIN = List.of(Ring.class, Ring.Unnamed.class, Sender.class, Receiver.class, RingEnd.class,
            SendingEnd.class, ReceivingEnd.class, Topic.class, Publisher.class, Subscriber.class,
            Slot.class, TensorSlot.class, Message.class, Batch.class, Bus.class, Listener.class, Region.class, Segments.class,
            Options.class, ListenOptions.class, ConnectOptions.class, RpcClient.class, RpcClient.Builder.class, RpcPending.class,
            RpcStream.class, RpcServer.class, RpcServer.Builder.class, RpcRequest.class, CallOptions.class);

    /** The lines of a page, in its order: IDs, and names under "Only here" with a * before them. */
    private static Map<String, String> page(String file, String separator) throws IOException {
        Map<String, String> all = new LinkedHashMap<>();
        boolean only = false;
        for (String line : Files.readAllLines(PAGES.resolve(file))) {
            only |= line.equals("## Only here");
            if (line.isBlank() || line.startsWith("#")) {
                continue;
            }
            int at = line.indexOf(separator);
            assertTrue(at > 0 && at + separator.length() < line.length(), line);
            all.put((only ? "*" : "") + line.substring(0, at), line.substring(at + separator.length()));
        }
        return all;
    }

    private static Set<String> named() throws IOException {
        Set<String> names = new TreeSet<>();
        page("java.txt", " = ").forEach((id, text) -> {
            if (id.startsWith("*")) {
                names.add(id.substring(1));
            } else if (!text.startsWith("-- ")) {
                names.addAll(Arrays.asList(text.split(", ")));
            }
        });
        return names;
    }

    @Test
    void everyIdHasItsLine() throws IOException {
        List<String> here = new ArrayList<>(page("java.txt", " = ").keySet());
        here.removeIf(id -> id.startsWith("*"));
        assertEquals(new ArrayList<>(page("calls.txt", " | ").keySet()), here);
    }

    @Test
    void everyNameIsThere() throws IOException {
        List<String> missing = new ArrayList<>();
        for (String name : named()) {
            if (type(name) == null && !isMember(name)) {
                missing.add(name);
            }
        }
        assertEquals(List.of(), missing);
    }

    private static Class<?> type(String name) {
        try {
            Class<?> found = Class.forName("dev.ramway." + name.replace('.', '$'));
            return Modifier.isPublic(found.getModifiers()) ? found : null;
        } catch (ClassNotFoundException e) {
            return null;
        }
    }

    private static boolean isMember(String name) {
        int dot = name.lastIndexOf('.');
        Class<?> owner = dot < 0 ? null : type(name.substring(0, dot));
        String member = name.substring(dot + 1);
        return owner != null && (Stream.of(owner.getMethods()).anyMatch(each -> each.getName().equals(member))
                || Stream.of(owner.getFields()).anyMatch(each -> each.getName().equals(member)));
    }

    @Test
    void everyCallIsNamed() throws IOException {
        Set<String> names = named();
        Set<String> unnamed = new TreeSet<>();
        for (Class<?> type : MAIN) {
            String of = type.getName().substring("dev.ramway.".length()).replace('$', '.');
            for (Method method : type.getMethods()) {
                String name = method.getName();
                boolean inherited = method.getDeclaringClass() == Object.class || method.isSynthetic();
                boolean boilerplate = type.isRecord() && (method.getDeclaringClass() == Record.class || !name.startsWith("with"));
                boolean above = RingEnd.class.isAssignableFrom(type) && names.contains("RingEnd." + name);
                boolean shared = method.getDeclaringClass() == SendingEnd.class && names.contains("Sender." + name)
                        || method.getDeclaringClass() == ReceivingEnd.class && names.contains("Receiver." + name);
                boolean everyEnds = type == RingEnd.class && names.contains("Sender." + name) && names.contains("Receiver." + name);
                boolean ofAll = List.of("forEach", "spliterator", "equals", "hashCode", "toString").contains(name);
                if (!inherited && !boilerplate && !above && !shared && !everyEnds && !ofAll && !names.contains(of + "." + name)) {
                    unnamed.add(of + "." + name);
                }
            }
        }
        assertEquals(Set.of(), unnamed);
    }

    @Test
    void theDefaultsAreThose() {
        assertEquals(new Options(0, 0, false, false, false, false, false, false, 0600, Duration.ZERO, WaitMode.HYBRID, true, -1),
                Options.DEFAULT);
        try (Ring.Pair pair = Ring.pair()) {
            assertEquals(1 << 20, pair.sender().capacity());
            assertEquals(16, pair.sender().align());
        }
        assertEquals(new ListenOptions(1 << 20, 1 << 20, 16, 0, Set.of(), Duration.ofSeconds(1), 128, false, false, WaitMode.HYBRID, true),
                ListenOptions.DEFAULT);
        assertEquals(new ConnectOptions(Duration.ofSeconds(10), Set.of(), WaitMode.HYBRID, true), ConnectOptions.DEFAULT);
        assertEquals(1024, Receiver.BATCH);
        String topic = Scratch.path(Scratch.name("defaults")).toString();
        try (Publisher pub = Topic.create(topic).publisher(); Subscriber sub = Topic.open(topic).subscriber()) {
            assertEquals(List.of(1L << 20, 32, Policy.RELIABLE, 32),
                    List.of(pub.capacity(), pub.align(), sub.policy(), Facts.TOPIC_SLOTS_DEFAULT));
        }
    }
}
