package dev.ramway;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Comparator;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;

/** A Ramway directory of this test run's own. */
final class Scratch {
    /** Far more than anything here takes, so that a slow machine is no failure and a hang is one. */
    static final Duration LONG = Duration.ofSeconds(60);

    /** Removed at the end of the run. */
    static final Path DIR = make();

    private static final AtomicInteger NUMBER = new AtomicInteger();

    private Scratch() {}

    /** A name that nothing has yet. */
    static String name(String about) {
        return about + "-" + NUMBER.incrementAndGet();
    }

    /** Where a name leads. */
    static Path path(String name) {
        return DIR.resolve(name);
    }

    /** An empty directory in memory. */
    static Path directory(String about) {
        try {
            return Files.createDirectory(DIR.resolve(name(about)));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static Path make() {
        try {
            Path dir = Files.createTempDirectory(Path.of("/dev/shm"), "ramway-java-test-");
            Runtime.getRuntime().addShutdownHook(new Thread(() -> remove(dir)));
            System.setProperty("ramway.dir", dir.toString());
            return dir;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static void remove(Path dir) {
        try (Stream<Path> all = Files.walk(dir)) {
            for (Path path : all.sorted(Comparator.reverseOrder()).toList()) {
                Files.deleteIfExists(path);
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
