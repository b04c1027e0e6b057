import dev.ramway.CallOptions;
import dev.ramway.ErrorKind;
import dev.ramway.RpcClient;
import dev.ramway.RpcException;
import dev.ramway.RpcPending;
import dev.ramway.RpcReply;
import dev.ramway.RpcStatus;
import dev.ramway.RpcStream;
import dev.ramway.TimedOutException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.zip.CRC32;

/** A client of RPC, and its commands. */
final class RpcCalls {
    /** The method that is registered by name. */
    static final String SUM = "Agent.Sum";

    private final RpcClient client;
    private final ArrayDeque<Kept> kept = new ArrayDeque<>();
    private final List<Reading> streams = new ArrayList<>();

    RpcCalls(String name, Line line) throws InterruptedException {
        RpcClient.Builder builder = RpcClient.builder(name).waitMode(line.waitMode())
                .timeout(Duration.ofMillis(line.number("timeout", Agent.OPEN_TIMEOUT.toMillis())));
        if (line.has("max_buffered")) {
            builder.maxBuffered(line.number("max_buffered", 0));
        }
        line.end();
        client = builder.connect();
        Agent.say("attached pid=" + ProcessHandle.current().pid() + " peer_pid=" + client.peerPid() + " max_in_flight="
                + client.maxInFlight());
    }

    /** A call that was started. */
    private record Kept(Row row, Request request, RpcPending pending) {}

    /** One call. */
    private record Request(long seq, byte[] body, CallOptions options) {}

    /** A row of calls. */
    private static final class Row {
        final int method;
        private final Messages messages;
        private final int metaLength;
        private final long deadline;

        Row(Line line) {
            String text = line.text("method", "");
            try {
                method = text.equals("sum") ? RpcClient.methodId(SUM) : Integer.parseUnsignedInt(text);
            } catch (NumberFormatException e) {
                throw new Line.RefusedException("method=" + text);
            }
            messages = new Messages(line, line.number("longest", 4096));
            metaLength = (int) line.number("meta", 0);
            deadline = line.number("deadline", -1);
        }

        private byte[] payload(long seq) {
            return messages.make(seq).payload().toArray(java.lang.foreign.ValueLayout.JAVA_BYTE);
        }

        Request request(long seq) {
            byte[] body = switch (method) {
                case 2 -> RpcServe.words((int) seq, payload(seq).length);
                case 3 -> {
                    byte[] text = ("call " + seq).getBytes(StandardCharsets.UTF_8);
                    byte[] all = Arrays.copyOf(RpcServe.words((int) seq + 1), 4 + text.length);
                    System.arraycopy(text, 0, all, 4, text.length);
                    yield all;
                }
                case 6, 7 -> new byte[0];
                default -> payload(seq);
            };
            CallOptions options = CallOptions.DEFAULT.withMeta(RpcServe.bytes(seq + 1, metaLength));
            return new Request(seq, body, deadline < 0 ? options : options.withTimeout(Duration.ofNanos(deadline * 1000)));
        }

        /** Says no to a reply that is not as it must be. */
        void check(Request request, RpcReply reply) {
            byte[] body = switch (method) {
                case 1, 5 -> request.body();
                case 2 -> RpcServe.bytes(request.seq(), payload(request.seq()).length);
                case 7 -> seven(request, reply.body());
                default -> {
                    if (method != RpcClient.methodId(SUM)) {
                        throw new Messages.BadException(request.seq(), "method " + Integer.toUnsignedString(method) + " replied");
                    }
                    CRC32 sum = new CRC32();
                    sum.update(request.body());
                    yield RpcServe.words((int) sum.getValue());
                }
            };
            same(request.seq(), "body", body, reply.body());
            same(request.seq(), "metadata", method == 1 || method == 5 ? request.options().meta() : new byte[0], reply.meta());
        }

        private byte[] seven(Request request, byte[] body) {
            ByteBuffer words = ByteBuffer.wrap(body).order(ByteOrder.LITTLE_ENDIAN);
            long most = deadline < 0 ? 0 : (deadline + 999) / 1000;
            if (body.length != 8 || words.getInt(0) != ProcessHandle.current().pid()
                    || Integer.toUnsignedLong(words.getInt(4)) > most || (words.getInt(4) == 0) != (most == 0)) {
                throw new Messages.BadException(request.seq(), "method 7 replied " + Arrays.toString(body) + " of " + most + " ms");
            }
            return body;
        }
    }

    private static void same(long seq, String what, byte[] expected, byte[] found) {
        int at = Arrays.mismatch(expected, found);
        if (at >= 0) {
            throw new Messages.BadException(seq, "byte " + at + " of the " + what + ", which has " + found.length + " bytes and should have "
                    + expected.length);
        }
    }

    private static void application(long seq, RpcException e, int code, String text) {
        if (e.code() != code || !e.text().equals(text)) {
            throw new Messages.BadException(seq, "error " + Integer.toUnsignedString(e.code()) + " with '" + e.text() + "' instead of "
                    + Integer.toUnsignedString(code) + " with '" + text + "'");
        }
    }

    private static String name(RpcException e) {
        return e.status().map(RpcStatus::formatName).orElseGet(() -> e.error().orElseThrow().formatName());
    }

    /** How many calls had which outcome. */
    private static final class Tally {
        private final long began = System.nanoTime();
        private final TreeMap<String, Long> names = new TreeMap<>();
        long cancelled;
        long bytes;
        private long mayHaveRun;

        void add(String name) {
            names.merge(name, 1L, Long::sum);
        }

        void failed(RpcException e) {
            add(name(e));
            mayHaveRun += e.mayHaveRun() ? 1 : 0;
        }

        void say(String begin) {
            String counts = names.entrySet().stream().map(each -> " " + each.getKey() + "=" + each.getValue())
                    .collect(Collectors.joining());
            Agent.say(begin + counts + (cancelled > 0 ? " cancelled=" + cancelled : "") + " may_have_run=" + mayHaveRun + " bytes=" + bytes
                    + " elapsed_ms=" + Stream.msSince(began));
        }
    }

    /** Gives a reply. */
    private interface Outcome {
        RpcReply get() throws InterruptedException;
    }

    /** Counts what came of a call, if it is as it must be. */
    private static void count(Tally tally, Row row, Request request, Outcome outcome) throws InterruptedException {
        try {
            RpcReply reply = outcome.get();
            row.check(request, reply);
            tally.bytes += reply.body().length;
            tally.add("Ok");
        } catch (RpcException e) {
            if (row.method == 3 && e.status().orElse(null) == RpcStatus.APPLICATION) {
                application(request.seq(), e, (int) request.seq() + 1, "call " + request.seq());
            }
            tally.failed(e);
        }
    }

    /** Whether it is still open after a command. */
    boolean obey(Line line) throws InterruptedException {
        switch (line.word) {
            case "call" -> call(line);
            case "start" -> start(line);
            case "collect" -> collect(line);
            case "stream" -> stream(line);
            case "next" -> next(line);
            case "cancel" -> cancel(line);
            case "health" -> health(line);
            case "describe" -> {
                line.end();
                Agent.say("described text=" + client.describe().stream().map(each -> Integer.toUnsignedString(each.number())
                        + (each.name().isEmpty() ? "" : " " + each.name())).collect(Collectors.joining(",")));
            }
            case "state" -> {
                line.end();
                Agent.say("state in_flight=" + client.inFlight());
            }
            case "measure" -> new RpcMeasure(client, line).run();
            case "close" -> {
                line.end();
                client.close();
                Agent.say("closed");
                return false;
            }
            default -> throw new Line.RefusedException(line.word + " is no command of a client");
        }
        return true;
    }

    private void call(Line line) throws InterruptedException {
        Row row = new Row(line);
        long count = line.number("count", 1);
        long first = line.number("start", 0);
        long inFlight = line.number("in_flight", 1);
        boolean cancels = line.yes("cancel");
        line.end();
        Tally tally = new Tally();
        ArrayDeque<Kept> underWay = new ArrayDeque<>();
        for (long seq = first; seq < first + count; seq++) {
            Request request = row.request(seq);
            if (inFlight == 1 && !cancels) {
                count(tally, row, request, () -> client.call(row.method, request.body(), request.options()));
                continue;
            }
            if (underWay.size() >= inFlight) {
                oldest(tally, underWay.remove(), cancels);
            }
            try {
                underWay.add(new Kept(row, request, client.start(row.method, request.body(), request.options())));
            } catch (RpcException e) {
                tally.failed(e);
            }
        }
        while (!underWay.isEmpty()) {
            oldest(tally, underWay.remove(), cancels);
        }
        tally.say("called count=" + count);
    }

    private static void oldest(Tally tally, Kept call, boolean cancels) throws InterruptedException {
        if (cancels && call.request().seq() % 2 == 1) {
            tally.cancelled++;
            call.pending().close();
        } else {
            count(tally, call.row(), call.request(), call.pending()::get);
        }
    }

    private void start(Line line) {
        Row row = new Row(line);
        long count = line.number("count", 1);
        long first = line.number("start", 0);
        line.end();
        for (long seq = first; seq < first + count; seq++) {
            Request request = row.request(seq);
            kept.add(new Kept(row, request, client.start(row.method, request.body(), request.options())));
        }
        Agent.say("started count=" + count);
    }

    private void collect(Line line) throws InterruptedException {
        Duration limit = Duration.ofMillis(line.number("timeout", 20_000));
        line.end();
        Tally tally = new Tally();
        long count = 0;
        while (!kept.isEmpty()) {
            Kept call = kept.peek();
            try {
                count(tally, call.row(), call.request(), () -> call.pending().get(limit));
            } catch (TimedOutException e) {
                Agent.say("end " + Agent.named(ErrorKind.TIMED_OUT));
                return;
            }
            kept.remove();
            count++;
        }
        tally.say("called count=" + count);
    }

    private void stream(Line line) {
        int count = (int) line.number("count", 0);
        int size = (int) line.number("size", 0);
        int code = (int) line.number("code", 0);
        long number = line.number("streams", 1);
        long first = line.number("start", 0);
        CallOptions options = CallOptions.DEFAULT;
        if (line.has("window")) {
            options = options.withWindow((int) line.number("window", 0));
        }
        if (line.has("deadline")) {
            options = options.withTimeout(Duration.ofNanos(1000 * line.number("deadline", 0)));
        }
        line.end();
        for (long seq = first; seq < first + number; seq++) {
            RpcStream stream = client.stream(4, RpcServe.words(count, size, code, (int) seq), options);
            streams.add(new Reading(stream, seq, size, Integer.toUnsignedLong(count), code));
        }
        Agent.say("started count=" + number);
    }

    /** A stream, and how far it was read. */
    private static final class Reading {
        final RpcStream stream;
        private final long seq;
        private final int size;
        private final long count;
        private final int code;
        private long received;
        boolean ended;

        Reading(RpcStream stream, long seq, int size, long count, int code) {
            this.stream = stream;
            this.seq = seq;
            this.size = size;
            this.count = count;
            this.code = code;
        }

        private void whole() {
            if (received != count) {
                throw new Messages.BadException(seq, received + " elements instead of " + count);
            }
        }

        /** Receives one element, and says how many that were: none where the stream has ended. */
        int next(Tally tally, Duration limit) throws InterruptedException {
            try {
                RpcReply element = stream.next(limit);
                if (element != null) {
                    same(seq, "element", RpcServe.bytes(seq + received, size), element.body());
                    received++;
                    tally.bytes += size;
                    return 1;
                }
                whole();
                if (code != 0) {
                    throw new Messages.BadException(seq, "it is complete in place of an error");
                }
                tally.add("Ok");
            } catch (RpcException e) {
                if (e.status().orElse(null) == RpcStatus.APPLICATION) {
                    whole();
                    application(seq, e, code, "after " + count);
                }
                tally.failed(e);
            }
            ended = true;
            return 0;
        }
    }

    private void next(Line line) throws InterruptedException {
        Duration limit = Duration.ofMillis(line.number("timeout", 20_000));
        long rounds = line.number("count", Long.MAX_VALUE);
        line.end();
        Tally tally = new Tally();
        long received = 0;
        for (; !streams.isEmpty() && rounds > 0; rounds--) {
            for (Reading each : streams) {
                try {
                    received += each.ended ? 0 : each.next(tally, limit);
                } catch (TimedOutException e) {
                    Agent.say("end " + Agent.named(ErrorKind.TIMED_OUT));
                    return;
                }
            }
            streams.removeIf(each -> each.ended);
        }
        tally.say("streamed received=" + received);
    }

    private void cancel(Line line) {
        line.end();
        int count = streams.size() + kept.size();
        streams.forEach(each -> each.stream.close());
        kept.forEach(each -> each.pending().close());
        streams.clear();
        kept.clear();
        Agent.say("cancelled count=" + count);
    }

    private void health(Line line) throws InterruptedException {
        line.end();
        try {
            client.ping();
            Agent.say("healthy");
        } catch (RpcException e) {
            int number = e.status().map(RpcStatus::number).orElseGet(() -> e.error().orElseThrow().number());
            Agent.say("end name=" + name(e) + " number=" + number);
        }
    }
}
