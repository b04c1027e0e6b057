package dev.ramway.bench;

import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The program that started this worker, as one side of a stream: {@code bench/src/sender.rs} and {@code receiver.rs}. */
public final class RustSide {
    /** How many messages of it differ: message n has the words of message n % POOL. */
    public static final int POOL = 4096;

    private final Process process;
    private final BufferedReader heard;
    private final BufferedWriter say;

    /**
     * Starts it.
     *
     * @param order {@code send} or {@code receive}
     * @param ring which the other side has created
     * @param setup where
     */
    public RustSide(String order, String ring, Setup setup) throws IOException {
        String program = System.getenv("RAMWAY_BENCH_PROGRAM");
        if (program == null) {
            throw new IOException("RAMWAY_BENCH_PROGRAM does not say which program is the other side");
        }
        Map<String, Object> words = new LinkedHashMap<>();
        words.put("protocol", Main.VERSION);
        words.put("ring", ring);
        words.put("cpu", setup.cpu(order.equals("send")));
        words.put("realtime", setup.realtime());
        List<String> command = new ArrayList<>();
        for (Object word : (List<?>) Json.read(program)) {
            command.add((String) word);
        }
        var builder = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT);
        builder.environment().put(Main.VARIABLE, Json.write(Map.of(order, words)));
        process = builder.start();
        heard = process.inputReader(StandardCharsets.UTF_8);
        say = process.outputWriter(StandardCharsets.UTF_8);
    }

    public long pid() {
        return process.pid();
    }

    public void ask(Burst burst) throws IOException {
        say.write(Json.write(Map.of("burst", burst.words())));
        say.newLine();
        say.flush();
    }

    /** {@return what it says next under this name; what a test's executable prints besides is none of its own words} */
    public Object hear(String name) throws IOException {
        for (String line; (line = heard.readLine()) != null; ) {
            if (line.startsWith("{")) {
                return Json.object(Json.read(line)).get(name);
            }
        }
        throw new IOException("the other side ended");
    }

    /** {@return nanoseconds of CLOCK_MONOTONIC, from what it said} */
    public static long time(Object said, String name) {
        return (Long) Json.object(said).get(name);
    }

    public void stop() throws IOException, InterruptedException {
        say.write("{\"quit\":null}\n");
        say.close();
        int status = process.waitFor();
        if (status != 0) {
            throw new IOException("the other side ended with " + status);
        }
    }
}
