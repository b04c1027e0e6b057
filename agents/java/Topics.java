import dev.ramway.Policy;
import dev.ramway.Publisher;
import dev.ramway.Topic;
import dev.ramway.WaitMode;
import java.time.Duration;
import java.util.Locale;

/** {@code open topic=}. */
final class Topics {
    private Topics() {}

    /** Opens one side, and does not say so yet. */
    static void open(Agent agent, String name, boolean consumes, WaitMode wait, Line line) throws InterruptedException {
        boolean create = line.yes("create");
        Topic topic = create ? Topic.create(name) : Topic.open(name);
        long capacity = line.number("capacity", 65536);
        int align = (int) line.number("align", 32);
        if (create) {
            topic.capacity(capacity).align(align);
        }
        long waitFor = line.number("wait_for", -1);
        topic.waitMode(wait).policy(policy(line)).label(line.text("label", "")).durable(line.yes("durable"))
                .ejectAfter(Duration.ofMillis(line.number("eject_after", 0)))
                .timeout(Duration.ofMillis(line.number("timeout", Agent.OPEN_TIMEOUT.toMillis())));
        begin(topic, line.text("from", ""));
        line.end();
        if (consumes) {
            if (waitFor >= 0) {
                throw new Line.RefusedException("wait_for is a producer's");
            }
            agent.rx = topic.subscriber();
            return;
        }
        Publisher pub = topic.publisher();
        agent.tx = pub;
        if (waitFor >= 0) {
            pub.waitForSubscribers((int) waitFor, Agent.OPEN_TIMEOUT);
        }
    }

    private static Policy policy(Line line) {
        String text = line.text("policy", "reliable");
        try {
            return Policy.valueOf(text.toUpperCase(Locale.ROOT));
        } catch (IllegalArgumentException e) {
            throw new Line.RefusedException("policy=" + text);
        }
    }

    private static void begin(Topic topic, String from) {
        String[] parts = from.split(":", 2);
        try {
            switch (parts[0]) {
                case "" -> { }
                case "oldest" -> topic.fromOldest();
                case "now" -> topic.fromNow();
                case "history" -> topic.history(Long.parseLong(parts[1]));
                case "after" -> topic.afterSeq(Long.parseLong(parts[1]));
                default -> throw new Line.RefusedException("from=" + from);
            }
        } catch (NumberFormatException | ArrayIndexOutOfBoundsException e) {
            throw new Line.RefusedException("from=" + from);
        }
    }
}
