package dev.ramway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.lang.reflect.Method;
import java.net.URISyntaxException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Assertions;
import org.junit.platform.commons.JUnitException;
import org.opentest4j.AssertionFailedError;

/**
 * Another process. What it does is a static method of a test class, {@code void name(Peer.Inside me, String[] args)}; it is
 * killed at the latest when it is closed.
 */
final class Peer implements AutoCloseable {
    /** In the environment: another option in place of the permission to call libc. */
    static final String ACCESS = "RAMWAY_TEST_ACCESS";

    private final Process process;
    private final BufferedReader said;

    private Peer(Process process) {
        this.process = process;
        this.said = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
    }

    /** The other process's side of the conversation. */
    static final class Inside {
        private final BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));

        private Inside() {}

        /** Tells the parent something. */
        void say(String line) {
            System.out.println(line);
            System.out.flush();
        }

        /** The parent's next word; null when it is gone or has nothing more to say. */
        String hear() {
            try {
                return in.readLine();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    }

    /** Runs {@code Class.method} of this package. */
    static Peer start(String program, String... args) {
        return start(program, Map.of(), args);
    }

    /** The same with more in the environment. */
    static Peer start(String program, Map<String, String> environment, String... args) {
        return start(List.of(), program, environment, args);
    }

    /** Runs it with all compilers, as a user's program is run; but a program that is compiled is waited for, on a busy machine too. */
    static Peer startOptimized(String program, String... args) {
        return start(List.of(), "-Xbatch", program, Map.of(), args);
    }

    /** The same by a command that runs the command which follows it, such as prlimit. */
    static Peer start(List<String> before, String program, Map<String, String> environment, String... args) {
        // Starts fast, and small enough for many at a time.
        return start(before, "-XX:TieredStopAtLevel=1", program, environment, args);
    }

    private static Peer start(List<String> before, String compilers, String program, Map<String, String> environment,
            String... args) {
        List<String> command = command(before, compilers, program, environment, args);
        ProcessBuilder builder = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT);
        builder.environment().put("RAMWAY_DIR", Scratch.DIR.toString());
        builder.environment().putAll(environment);
        try {
            return new Peer(builder.start());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** What runs a program, for tests that start it themselves. */
    static List<String> command(String program, String... args) {
        return command(List.of(), "-XX:TieredStopAtLevel=1", program, Map.of(), args);
    }

    private static List<String> command(List<String> before, String compilers, String program, Map<String, String> environment,
            String... args) {
        List<String> command = new ArrayList<>(before);
        command.addAll(List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString(), compilers,
                "-XX:+UseSerialGC", "-Xmx64m", "-Xshare:auto", environment.getOrDefault(ACCESS, "--enable-native-access=ALL-UNNAMED"),
                "-cp", classPath(),
                Peer.class.getName(), program));
        command.addAll(List.of(args));
        return command;
    }

    /** Where the classes, the tests' classes and the tests' tools are, whether or not this runs as a module. */
    private static String classPath() {
        Path classes = origin(ErrorKind.class);
        return List.of(classes.resolveSibling("classes"), classes.resolveSibling("test-classes"), origin(Assertions.class),
                origin(AssertionFailedError.class), origin(JUnitException.class)).stream().map(Path::toString)
                .collect(Collectors.joining(File.pathSeparator));
    }

    private static Path origin(Class<?> type) {
        try {
            return Path.of(type.getProtectionDomain().getCodeSource().getLocation().toURI());
        } catch (URISyntaxException e) {
            throw new IllegalStateException(e);
        }
    }

    /** In the other process. */
    public static void main(String[] args) throws Throwable {
        String[] program = args[0].split("\\.");
        Method method = Class.forName(Peer.class.getPackageName() + "." + program[0]).getDeclaredMethod(program[1], Inside.class,
                String[].class);
        method.setAccessible(true);
        method.invoke(null, new Inside(), java.util.Arrays.copyOfRange(args, 1, args.length));
        // Whatever threads it has left.
        System.exit(0);
    }

    long pid() {
        return process.pid();
    }

    void tell(String line) {
        try {
            process.getOutputStream().write((line + "\n").getBytes(StandardCharsets.UTF_8));
            process.getOutputStream().flush();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** The next thing that it says. The test fails if it ends first. */
    String hear() {
        try {
            String line = said.readLine();
            return line != null ? line : fail("the other process ended without a word");
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    void expect(String line) {
        assertEquals(line, hear());
    }

    /** Kills it by SIGKILL, and waits until the kernel has let its files go. */
    void kill() {
        process.destroyForcibly();
        waitFor();
    }

    /** Tells it that there is nothing more to say, waits for it, and expects that all was well. */
    void finish() {
        try {
            process.getOutputStream().close();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        assertEquals(0, waitFor());
    }

    /** Sends it a signal by name, such as STOP. */
    void signal(String name) {
        try {
            assertEquals(0, new ProcessBuilder("kill", "-" + name, Long.toString(pid())).inheritIO().start().waitFor());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    int waitFor() {
        try {
            assertTrue(process.waitFor(Scratch.LONG.toSeconds(), TimeUnit.SECONDS), "the other process does not end");
            return process.exitValue();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    @Override
    public void close() {
        if (process.isAlive()) {
            kill();
        }
    }
}
