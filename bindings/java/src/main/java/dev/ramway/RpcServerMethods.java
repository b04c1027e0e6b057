package dev.ramway;

import java.nio.charset.StandardCharsets;
import java.util.Objects;
import java.util.concurrent.ConcurrentSkipListMap;

/** The methods of a server, by number. Safe for any number of threads. */
final class RpcServerMethods {
    /**
     * A method.
     *
     * @param name empty: none
     * @param one gives one reply; null: {@code many} gives a stream
     * @param inline {@code one} runs on the thread that reads what its client asks
     */
    record Method(int number, String name, RpcHandler one, RpcStreamHandler many, boolean inline) {}

    private final ConcurrentSkipListMap<Integer, Method> methods = new ConcurrentSkipListMap<>(Integer::compareUnsigned);

    void add(int number, RpcHandler one, RpcStreamHandler many, boolean inline) {
        if (RpcFrames.isReserved(number)) {
            throw Errors.fail(ErrorKind.INVALID_ARGUMENT, "method %s is Ramway's own: applications use numbers below %s",
                    Integer.toUnsignedString(number), Integer.toUnsignedString(Facts.METHOD_RESERVED));
        }
        add(new Method(number, "", one, many, inline));
    }

    void add(String name, RpcHandler one, RpcStreamHandler many, boolean inline) {
        if (Objects.requireNonNull(name, "name").isEmpty() || name.chars().anyMatch(Character::isISOControl)) {
            throw Errors.fail(ErrorKind.INVALID_ARGUMENT, "a method's name that is empty or has control characters");
        }
        add(new Method(RpcFrames.methodId(name), name, one, many, inline));
    }

    private void add(Method method) {
        Method there = methods.putIfAbsent(method.number(), method);
        if (there != null) {
            throw Errors.fail(ErrorKind.ALREADY_EXISTS, "method %s%s has a handler already%s: give one of them another number or name",
                    Integer.toUnsignedString(method.number()), named(method), named(there));
        }
    }

    private static String named(Method method) {
        return method.name().isEmpty() ? "" : " ('" + method.name() + "')";
    }

    /** The method of a number; null: there is none. */
    Method find(int number) {
        return methods.get(number);
    }

    /** The answer to describe. */
    byte[] describe() {
        StringBuilder lines = new StringBuilder();
        for (Method method : methods.values()) {
            lines.append(Integer.toUnsignedString(method.number()));
            if (!method.name().isEmpty()) {
                lines.append(' ').append(method.name());
            }
            lines.append('\n');
        }
        return lines.toString().getBytes(StandardCharsets.UTF_8);
    }
}
