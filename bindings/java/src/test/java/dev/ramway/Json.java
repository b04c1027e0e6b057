package dev.ramway;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** As much of JSON as the vectors have: objects, arrays, strings without escapes but of quotes, whole numbers. */
final class Json {
    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    static Object parse(String text) {
        Json json = new Json(text);
        Object value = json.value();
        json.space();
        if (json.at != text.length()) {
            throw json.wrong();
        }
        return value;
    }

    private IllegalArgumentException wrong() {
        return new IllegalArgumentException("not JSON at " + at + ": " + text.substring(at, Math.min(at + 20, text.length())));
    }

    private void space() {
        while (at < text.length() && Character.isWhitespace(text.charAt(at))) {
            at++;
        }
    }

    private boolean is(char c) {
        space();
        if (at < text.length() && text.charAt(at) == c) {
            at++;
            return true;
        }
        return false;
    }

    private void expect(char c) {
        if (!is(c)) {
            throw wrong();
        }
    }

    private Object value() {
        if (is('{')) {
            return object();
        }
        if (is('[')) {
            return array();
        }
        if (is('"')) {
            return string();
        }
        int begin = at;
        while (at < text.length() && "-0123456789".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
        if (begin == at) {
            for (String word : List.of("true", "false")) {
                if (text.startsWith(word, at)) {
                    at += word.length();
                    return word.equals("true");
                }
            }
            throw wrong();
        }
        return Long.parseLong(text.substring(begin, at));
    }

    private Map<String, Object> object() {
        Map<String, Object> fields = new LinkedHashMap<>();
        if (is('}')) {
            return fields;
        }
        do {
            expect('"');
            String name = string();
            expect(':');
            fields.put(name, value());
        } while (is(','));
        expect('}');
        return fields;
    }

    private List<Object> array() {
        List<Object> elements = new ArrayList<>();
        if (is(']')) {
            return elements;
        }
        do {
            elements.add(value());
        } while (is(','));
        expect(']');
        return elements;
    }

    private String string() {
        StringBuilder s = new StringBuilder();
        while (text.charAt(at) != '"') {
            if (text.charAt(at) == '\\') {
                at++;
                if ("\"\\/".indexOf(text.charAt(at)) < 0) {
                    throw wrong();
                }
            }
            s.append(text.charAt(at++));
        }
        at++;
        return s.toString();
    }
}
