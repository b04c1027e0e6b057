package dev.ramway.bench;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** As much of JSON as the protocol has: what comes in one line from a program that writes it well. */
final class Json {
    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    /** {@return a map, a list, a string, a number as Long or Double, a Boolean, or null} */
    static Object read(String text) {
        var json = new Json(text);
        Object value = json.value();
        json.skip();
        if (json.at != text.length()) {
            throw json.wrong();
        }
        return value;
    }

    @SuppressWarnings("unchecked")
    static Map<String, Object> object(Object value) {
        return (Map<String, Object>) value;
    }

    static String write(Object value) {
        var out = new StringBuilder();
        write(out, value);
        return out.toString();
    }

    private static void write(StringBuilder out, Object value) {
        switch (value) {
            case null -> out.append("null");
            case String string -> quote(out, string);
            case long[] numbers -> {
                char before = '[';
                for (long number : numbers) {
                    out.append(before).append(number);
                    before = ',';
                }
                out.append(numbers.length == 0 ? "[]" : "]");
            }
            case Map<?, ?> map -> {
                char before = '{';
                for (var entry : map.entrySet()) {
                    quote(out.append(before), (String) entry.getKey());
                    write(out.append(':'), entry.getValue());
                    before = ',';
                }
                out.append(map.isEmpty() ? "{}" : "}");
            }
            case List<?> list -> {
                char before = '[';
                for (Object one : list) {
                    write(out.append(before), one);
                    before = ',';
                }
                out.append(list.isEmpty() ? "[]" : "]");
            }
            default -> out.append(value);
        }
    }

    private static void quote(StringBuilder out, String string) {
        out.append('"');
        for (char one : string.toCharArray()) {
            if (one == '"' || one == '\\') {
                out.append('\\').append(one);
            } else if (one < ' ') {
                out.append(String.format("\\u%04x", (int) one));
            } else {
                out.append(one);
            }
        }
        out.append('"');
    }

    private IllegalArgumentException wrong() {
        return new IllegalArgumentException("no JSON at character " + at + " of " + text);
    }

    private char skip() {
        while (at < text.length() && text.charAt(at) <= ' ') {
            at++;
        }
        return at < text.length() ? text.charAt(at) : 0;
    }

    private boolean took(char wanted) {
        if (skip() == wanted) {
            at++;
            return true;
        }
        return false;
    }

    private void take(char wanted) {
        if (!took(wanted)) {
            throw wrong();
        }
    }

    private Object value() {
        switch (skip()) {
            case '{' -> {
                take('{');
                Map<String, Object> map = new LinkedHashMap<>();
                if (took('}')) {
                    return map;
                }
                do {
                    skip();
                    String name = string();
                    take(':');
                    map.put(name, value());
                } while (took(','));
                take('}');
                return map;
            }
            case '[' -> {
                take('[');
                List<Object> list = new ArrayList<>();
                if (took(']')) {
                    return list;
                }
                do {
                    list.add(value());
                } while (took(','));
                take(']');
                return list;
            }
            case '"' -> {
                return string();
            }
            default -> {
                int from = at;
                while (at < text.length() && "+-.0123456789Eaeflnrstu".indexOf(text.charAt(at)) >= 0) {
                    at++;
                }
                return plain(text.substring(from, at));
            }
        }
    }

    private Object plain(String word) {
        return switch (word) {
            case "null" -> null;
            case "true" -> Boolean.TRUE;
            case "false" -> Boolean.FALSE;
            case "" -> throw wrong();
            default -> word.matches("-?[0-9]+") ? (Object) Long.parseLong(word) : Double.valueOf(word);
        };
    }

    private String string() {
        take('"');
        var out = new StringBuilder();
        for (;;) {
            char one = text.charAt(at++);
            if (one == '"') {
                return out.toString();
            }
            if (one != '\\') {
                out.append(one);
                continue;
            }
            char escaped = text.charAt(at++);
            switch (escaped) {
                case 'n' -> out.append('\n');
                case 't' -> out.append('\t');
                case 'r' -> out.append('\r');
                case 'b' -> out.append('\b');
                case 'f' -> out.append('\f');
                case 'u' -> {
                    out.append((char) Integer.parseInt(text.substring(at, at + 4), 16));
                    at += 4;
                }
                default -> out.append(escaped);
            }
        }
    }
}
