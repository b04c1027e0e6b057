package dev.ramway.bench;

import java.util.LinkedHashMap;
import java.util.Map;

/**
 * A line of the list.
 *
 * @param name the row's
 * @param kind {@code ramway} or {@code peer}
 * @param copied whether the payload is copied between where it is written and where it is read
 * @param what one line
 * @param version of the library; empty for Ramway
 */
public record About(String name, String kind, boolean copied, String what, String version) {
    Map<String, Object> words() {
        Map<String, Object> words = new LinkedHashMap<>();
        words.put("name", name);
        words.put("kind", kind);
        words.put("copied", copied);
        words.put("what", "Java " + Runtime.version().feature() + ": " + what);
        words.put("version", version);
        return words;
    }

    /** {@return the version of the library that this class is from, by the name of its jar} */
    public static String versionOf(Class<?> of) {
        String jar = of.getProtectionDomain().getCodeSource().getLocation().getPath();
        return jar.replaceFirst(".*?-([0-9][^/]*)\\.jar$", "$1");
    }
}
