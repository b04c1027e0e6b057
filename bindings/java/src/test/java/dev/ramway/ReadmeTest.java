package dev.ramway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.IOException;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The programs of README.md, as a user has them: compiled, run as processes, and what they print. */
@Timeout(300)
class ReadmeTest {
    // A program that begins with its file's name, and what it prints if that is said right after it.
    private static final Pattern PROGRAM =
            Pattern.compile("```java\n(// (\\w+)\\.java\n.*?)```\n(?:```text\n(.*?)```\n)?", Pattern.DOTALL);

    /** Those that talk to each other; each of the others is alone. The first has to go on until the second is done. */
    private static final Map<String, String> TOGETHER = Map.of("Consumer", "Producer", "Client", "Server", "Caller", "Service");

    @TempDir
    private Path out;

    private static String classes() throws URISyntaxException {
        Path main = Path.of(ErrorKind.class.getProtectionDomain().getCodeSource().getLocation().toURI());
        // Tests may be patched into the module.
        return main.resolveSibling("classes").toString();
    }

    private void compile(Map<String, String> programs) throws Exception {
        List<String> command = new ArrayList<>(List.of(tool("javac"), "--release", "22", "-Xlint:all", "-Werror", "-cp", classes(), "-d",
                out.toString()));
        for (Map.Entry<String, String> program : programs.entrySet()) {
            Path file = out.resolve(program.getKey() + ".java");
            Files.writeString(file, program.getValue());
            command.add(file.toString());
        }
        assertEquals(0, new ProcessBuilder(command).inheritIO().start().waitFor(), "it does not compile");
    }

    private static String tool(String name) {
        return Path.of(System.getProperty("java.home"), "bin", name).toString();
    }

    private Process start(String program, Path directory) throws IOException, URISyntaxException {
        ProcessBuilder builder = new ProcessBuilder(tool("java"), "--enable-native-access=ALL-UNNAMED", "-XX:TieredStopAtLevel=1", "-cp",
                classes() + File.pathSeparator + out, program);
        builder.environment().put("RAMWAY_DIR", directory.toString());
        return builder.redirectErrorStream(true).start();
    }

    @Test
    void everyProgramPrintsWhatThePageSays() throws Exception {
        Map<String, String> programs = new TreeMap<>();
        Map<String, String> prints = new TreeMap<>();
        Matcher m = PROGRAM.matcher(Files.readString(Path.of("README.md")));
        while (m.find()) {
            programs.put(m.group(2), m.group(1));
            if (m.group(3) != null) {
                prints.put(m.group(2), m.group(3));
            }
        }
        assertTrue(programs.size() >= 8, "programs found: " + programs.keySet());
        compile(programs);
        for (String program : programs.keySet()) {
            if (!TOGETHER.containsValue(program)) {
                assertTrue(prints.containsKey(program), program + " says what it prints");
                run(program, TOGETHER.get(program), prints.get(program));
            }
        }
    }

    /** Maven's and Gradle's lines are of what pom.xml makes. */
    @Test
    void theDependencyIsTheOneThatIsMade() throws IOException {
        String pom = Files.readString(Path.of("pom.xml"));
        String element = "<%s>(.*?)</%1$s>\\s*";
        Matcher made = Pattern.compile(element.formatted("groupId") + element.formatted("artifactId") + element.formatted("version"))
                .matcher(pom);
        assertTrue(made.find());
        String page = Files.readString(Path.of("README.md"));
        Matcher said = made.pattern().matcher(page);
        assertTrue(said.find());
        assertEquals(made.group().strip(), said.group().strip());
        assertTrue(page.contains("implementation(\"" + made.group(1) + ":" + made.group(2) + ":" + made.group(3) + "\")"));
    }

    private void run(String program, String other, String expected) throws Exception {
        Path directory = Scratch.directory("readme");
        Process second = other == null ? null : start(other, directory);
        Process first = start(program, directory);
        try {
            assertEquals(expected, new String(first.getInputStream().readAllBytes()), program);
            ended(first, program);
            if (second != null) {
                ended(second, other);
            }
            assertEquals(List.of(), BusTest.names(directory), program + " leaves nothing");
        } finally {
            first.destroyForcibly();
            if (second != null) {
                second.destroyForcibly();
            }
        }
    }

    private static void ended(Process process, String program) throws InterruptedException {
        assertTrue(process.waitFor(60, TimeUnit.SECONDS), program + " ends");
        assertEquals(0, process.exitValue(), program);
    }
}
