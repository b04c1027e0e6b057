package dev.ramway.bench;

import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/**
 * A worker of {@code ramway bench} (the head of {@code bench/src/worker.rs} is its protocol). Its argument is the class that
 * has the mechanisms, its order in RAMWAY_BENCH_WORKER.
 */
public final class Main {
    static final String VARIABLE = "RAMWAY_BENCH_WORKER";
    static final int VERSION = 1;
    /** How long a pair works before it counts, and how many operations at least: until then code is compiled that it goes through. */
    private static final long WARM_UP_NS = 1_500_000_000L;
    private static final long WARM_UP_OPERATIONS = 200_000;
    /** How long the compilers of both have to have been idle then. */
    private static final long QUIET_NS = 300_000_000L;
    /** A library that takes 10 µs for each, on a machine that is busy, is warm then too. */
    private static final long WARM_UP_LONGEST_NS = 10_000_000_000L;

    /** Standard output is the protocol's, whatever a library prints. */
    private static final PrintStream OUT = new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);

    private Main() {}

    /**
     * The program.
     *
     * @param arguments the class that has {@code static List<Mechanism> mechanisms()}
     */
    public static void main(String[] arguments) {
        System.setOut(System.err);
        Map<String, Object> order = Json.object(Json.read(System.getenv().getOrDefault(VARIABLE, "{}")));
        int status = 0;
        try {
            if (arguments.length != 1 || order.isEmpty()) {
                System.err.println("a worker of `ramway bench`, which starts it");
                status = 2;
            } else if (order.containsKey("list")) {
                OUT.println(Json.write(mechanisms(arguments[0]).stream().map(one -> one.about().words()).toList()));
            } else if (order.containsKey("follow")) {
                Map<String, Object> told = Json.object(order.get("follow"));
                Follower.run(find(arguments[0], told), Setup.read(Json.object(told.get("setup"))), stdout());
            } else {
                lead(arguments[0], Json.object(order.get("lead")));
            }
        } catch (Throwable cause) {
            if (order.containsKey("lead")) {
                answer("failed", why(cause));
            }
            cause.printStackTrace();
            status = 1;
        }
        // Threads of libraries end with it.
        Runtime.getRuntime().halt(status);
    }

    private static OutputStream stdout() {
        return new FileOutputStream(FileDescriptor.out);
    }

    @SuppressWarnings("unchecked")
    private static List<Mechanism> mechanisms(String name) throws ReflectiveOperationException {
        return (List<Mechanism>) Class.forName(name).getMethod("mechanisms").invoke(null);
    }

    private static Mechanism find(String name, Map<String, Object> told) throws ReflectiveOperationException {
        return mechanisms(name).stream().filter(one -> one.about().name().equals(told.get("mechanism"))).findFirst()
                .orElseThrow(() -> new IllegalArgumentException("no mechanism here is called " + told.get("mechanism")));
    }

    /** The whole of the leading process. */
    private static void lead(String name, Map<String, Object> told) throws Exception {
        if (!Long.valueOf(VERSION).equals(told.get("protocol"))) {
            throw new IllegalArgumentException("speaks version " + VERSION + " of the protocol, not " + told.get("protocol"));
        }
        Mechanism mechanism = find(name, told);
        Burst burst = Burst.read(Json.object(told.get("burst")));
        if (!mechanism.can(burst)) {
            answer("cannot", null);
            return;
        }
        Setup setup = Setup.read(Json.object(told.get("setup")));
        var measured = new Pair(mechanism, setup, Json.write(Map.of("follow", told)));
        warmUp(measured, burst);
        answer("ready", Map.of("pids", measured.pids()));
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null; ) {
            Map<String, Object> asked = Json.object(Json.read(line));
            if (asked.containsKey("quit")) {
                break;
            }
            answer("outcome", measured.burst(Burst.read(Json.object(asked.get("burst")))).words());
        }
        measured.stop();
    }

    /** Through the very same loops, in bursts of about the size of those that count. */
    private static void warmUp(Pair measured, Burst burst) throws Exception {
        long began = System.nanoTime();
        long operations = 0;
        long compiled = 0;
        long quiet = began;
        for (long now = began; now - began < WARM_UP_LONGEST_NS; now = System.nanoTime()) {
            if (now - began >= WARM_UP_NS && operations >= WARM_UP_OPERATIONS && now - quiet >= QUIET_NS) {
                return;
            }
            Burst larger = burst.times(operations < 20_000 ? 1 : 10);
            Outcome outcome = measured.burst(larger);
            operations += larger.count();
            long all = outcome.leading().compiled() + outcome.following().compiled();
            if (all != compiled) {
                compiled = all;
                quiet = System.nanoTime();
            }
        }
    }

    /** A line of the protocol. */
    static void answer(String what, Object words) {
        OUT.println(Json.write(Collections.singletonMap(what, words)));
    }

    /** {@return the text of whatever was thrown, and of what caused it} */
    static String why(Throwable thrown) {
        return Stream.iterate(thrown, cause -> cause != null, Throwable::getCause)
                .map(cause -> cause.getMessage() == null ? cause.getClass().getSimpleName() : cause.getMessage())
                .reduce((outer, inner) -> outer.contains(inner) ? outer : outer + ": " + inner).orElseThrow();
    }
}
