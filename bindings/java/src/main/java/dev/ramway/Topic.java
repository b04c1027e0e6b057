package dev.ramway;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Objects;

/**
 * How a topic is to be made or opened: one log with one publisher and any number of subscribers, each of which reads at its own
 * position. The calls of this class say how, and {@link #publisher} or {@link #subscriber} does it. For one thread.
 *
 * {@snippet :
 * try (Publisher pub = Topic.openOrCreate("ticks").capacity(8 << 20).publisher()) { }
 * try (Subscriber sub = Topic.open("ticks").lossy().history(10).subscriber()) { }
 * }
 *
 * <p>Names are those of rings ({@link Sender#create(String)}). The name goes when the last handle does, unless a durable subscriber has
 * not received everything, or the topic is persistent: history alone keeps no topic.
 */
public final class Topic {
    private final String name;
    private final OpenMode mode;
    private Options options = Options.DEFAULT;
    private int slots;
    private boolean lossyOnly;
    private boolean mayEject;
    private Duration ejectAfter = Duration.ZERO;
    private boolean timestamps;
    Policy policy = Policy.RELIABLE;
    String label = "";
    boolean durable;
    Start start = Start.DEFAULT;
    boolean readOnly;

    private Topic(String name, OpenMode mode) {
        this.name = Objects.requireNonNull(name, "name");
        this.mode = mode;
    }

    /**
     * A topic that must be new; either side may make it. ALREADY_EXISTS if somebody uses the name, if it holds what a durable
     * subscriber has not received, or if something else has it. What dead processes left is replaced.
     *
     * @param name a name, or a path with a '/'
     * @return to say how
     */
    public static Topic create(String name) {
        return new Topic(name, OpenMode.CREATE);
    }

    /**
     * A topic that exists, also one that dead processes left. NOT_FOUND if there is none; see {@link #timeout}.
     *
     * @param name a name, or a path with a '/'
     * @return to say how
     */
    public static Topic open(String name) {
        return new Topic(name, OpenMode.OPEN);
    }

    /**
     * A topic that exists, else it is made. INVALID_ARGUMENT if it exists with another capacity, alignment or number of slots than
     * was asked for, or without a property that was asked for.
     *
     * @param name a name, or a path with a '/'
     * @return to say how
     */
    public static Topic openOrCreate(String name) {
        return new Topic(name, OpenMode.OPEN_OR_CREATE);
    }

    /**
     * Takes the publisher's role. It blocks as {@link #timeout} says.
     *
     * @return the publisher
     * @throws RamwayException BUSY if the topic has one; UNSUPPORTED for ejectAfter where the topic was made without mayEject;
     *     INVALID_ARGUMENT for an option that is a subscriber's; else as of {@link Sender#open(String)}
     */
    public Publisher publisher() {
        return HandleCleaner.freeingSpace(() -> named(() -> {
            checkPublisher();
            long eject = RingEnd.nanos(ejectAfter);
            return Publisher.attach(attachment(Role.PRODUCER), options, timestamps, eject);
        }));
    }

    /**
     * Joins as a subscriber. It blocks as {@link #timeout} says.
     *
     * @return the subscriber
     * @throws RamwayException BUSY if every slot is taken, or a live subscriber has the label; UNSUPPORTED for a reliable one where the
     *     topic is lossyOnly; PERMISSION_DENIED for one that may not write the file and is not readOnly; INVALID_ARGUMENT for an option
     *     that is a publisher's; else as of {@link Receiver#open(String)}
     */
    public Subscriber subscriber() {
        return HandleCleaner.freeingSpace(() -> named(() -> {
            checkSubscriber();
            return Subscriber.attach(attachment(Role.CONSUMER), options, this);
        }));
    }

    private <T> T named(java.util.function.Supplier<T> opening) {
        return SegmentRequest.named(name, mode, Facts.KIND_TOPIC, opening);
    }

    private static void refuse(boolean wrong, String text) {
        if (wrong) {
            throw Errors.of(ErrorKind.INVALID_ARGUMENT, text);
        }
    }

    private void checkPublisher() {
        refuse(policy != Policy.RELIABLE, "policy is not for a publisher");
        refuse(start != Start.DEFAULT, "a start is not for a publisher");
        refuse(!label.isEmpty(), "label is not for a publisher");
        refuse(durable, "durable is not for a publisher");
        refuse(readOnly, "readOnly is not for a publisher");
    }

    private void checkSubscriber() {
        refuse(!ejectAfter.isZero(), "ejectAfter is not for a subscriber");
        refuse(timestamps, "timestamps is not for a subscriber");
        byte[] bytes = labelBytes();
        refuse(bytes.length > Facts.LABEL_MAX || label.indexOf(0) >= 0
                        || !new String(bytes, StandardCharsets.UTF_8).equals(label),
                String.format("the label '%s' of %d bytes: expected 1 to %d bytes of UTF-8 without a zero byte", label, bytes.length,
                        Facts.LABEL_MAX));
        refuse(durable && policy != Policy.RELIABLE, "durable is for a reliable subscriber: the publisher keeps messages for no other");
        refuse(durable && label.isEmpty(), "a durable subscriber needs a label, by which the next one finds its position");
        refuse(policy == Policy.LATEST && start != Start.DEFAULT,
                "a subscriber with the policy LATEST reads the newest message: it begins nowhere else");
        refuse(readOnly && policy == Policy.RELIABLE,
                "a reliable subscriber tells the publisher what it has read, so it cannot be readOnly");
        refuse(readOnly && !label.isEmpty(), "a readOnly subscriber cannot show a label: it writes nothing");
        refuse(readOnly && mode != OpenMode.OPEN, "a readOnly subscriber creates nothing: open the topic");
    }

    byte[] labelBytes() {
        return label.getBytes(StandardCharsets.UTF_8);
    }

    private Attachment attachment(Role role) {
        options.check(mode);
        int flags = (lossyOnly ? Facts.TOPIC_LOSSY_ONLY : 0) | (mayEject || !ejectAfter.isZero() ? Facts.TOPIC_MAY_EJECT : 0);
        refuse(flags == Facts.TOPIC_FLAGS_KNOWN,
                "a topic that takes no reliable subscribers has nobody to eject: say lossyOnly or mayEject");
        // Checked here although an existing topic may need none of it: a mistake shows on the first run.
        SegmentSpec spec = SegmentSpec.topic(options, slots == 0 ? Facts.TOPIC_SLOTS_DEFAULT : slots, flags).named(options.persistent());
        boolean subscribes = role == Role.CONSUMER;
        return new SegmentRequest(name, mode, Facts.KIND_TOPIC, spec, subscribes ? SegmentLink.NO_ROLE : Facts.BYTE_PUBLISHER, readOnly,
                options, found -> refuseOther(found.blocks()[0], subscribes))
                .open(s -> {
                    BlockGeometry g = s.header().blocks()[0];
                    boolean copies = subscribes && (policy != Policy.RELIABLE || (g.flags() & Facts.TOPIC_MAY_EJECT) != 0);
                    return Attachment.topic(name, s.fd(), g, new TopicLink(s.link()), role, !readOnly, copies, options);
                });
    }

    /** Refuses a topic that has other properties than were asked for. */
    private void refuseOther(BlockGeometry found, boolean subscribes) {
        // A capacity follows the alignment.
        Options like = options.align() == 0 ? options.withAlign(found.align()) : options;
        BlockGeometry wanted = SegmentSpec.topic(like, found.slots(), found.flags()).blocks()[0];
        if (options.capacity() != 0 && found.capacity() != wanted.capacity()) {
            throw Attachment.differs("capacity", wanted.capacity(), found.capacity());
        }
        if (options.align() != 0 && found.align() != wanted.align()) {
            throw Attachment.differs("alignment", wanted.align(), found.align());
        }
        refuse(slots != 0 && found.slots() != slots, String.format(
                "it exists, and its number of slots is %d, not the %d asked for; leave it out to take what is there", found.slots(),
                slots));
        boolean isLossyOnly = (found.flags() & Facts.TOPIC_LOSSY_ONLY) != 0;
        boolean canEject = (found.flags() & Facts.TOPIC_MAY_EJECT) != 0;
        refuse(lossyOnly && !isLossyOnly, "it exists, and takes reliable subscribers: lossyOnly is decided when a topic is made");
        if (!ejectAfter.isZero() && !canEject) {
            throw Errors.of(ErrorKind.UNSUPPORTED, "it exists, and its creator did not allow ejecting subscribers (mayEject): leave "
                    + "ejectAfter out, or create the topic anew");
        }
        refuse(mayEject && !canEject, "it exists, and subscribers cannot be ejected: mayEject is decided when a topic is made");
        if (subscribes && policy == Policy.RELIABLE && isLossyOnly) {
            throw Errors.of(ErrorKind.UNSUPPORTED, "the topic takes no reliable subscribers (its creator said lossyOnly): subscribe with "
                    + "the policy LOSSY or LATEST");
        }
    }

    /**
     * The size of the log. A message takes at most half of it.
     *
     * @param capacity in bytes, frame headers (32 bytes a message) included, rounded up to a power of two of at least a page; 0,
     *     the default, is 1 MiB for a new topic and whatever an existing one has
     * @return this
     */
    public Topic capacity(long capacity) {
        options = options.withCapacity(capacity);
        return this;
    }

    /**
     * What every payload's address is a multiple of in the log.
     *
     * @param align in bytes, a power of two from 32 to 4096; 0, the default, is 32 for a new topic and whatever an existing one has
     * @return this
     */
    public Topic align(int align) {
        options = options.withAlign(align);
        return this;
    }

    /**
     * How many reliable subscribers there can be at a time. (Others take a free slot of the upper half, so that they are seen, and
     * do without where there is none.)
     *
     * @param slots from 1 to 1024; 0, the default, is 32 for a new topic and whatever an existing one has
     * @return this
     */
    public Topic slots(int slots) {
        this.slots = slots;
        return this;
    }

    /**
     * Whether a new topic takes no reliable subscriber, so that its publisher never waits. An existing one must be such.
     *
     * @param lossyOnly false by default
     * @return this
     */
    public Topic lossyOnly(boolean lossyOnly) {
        this.lossyOnly = lossyOnly;
        return this;
    }

    /**
     * Whether the publisher of a new topic may eject a reliable subscriber that holds it up; subscribers copy what they receive
     * then. An existing one must be such.
     *
     * @param mayEject false by default
     * @return this
     */
    public Topic mayEject(boolean mayEject) {
        this.mayEject = mayEject;
        return this;
    }

    /**
     * Of a publisher: a reliable subscriber that has kept it waiting for so long without releasing anything is ejected. Its next
     * call throws {@link LaggedException}, and it goes on at the oldest message that is left. It asks for mayEject.
     *
     * @param time zero, the default: the publisher waits for it as long as its process lives
     * @return this
     */
    public Topic ejectAfter(Duration time) {
        ejectAfter = Objects.requireNonNull(time, "time");
        return this;
    }

    /**
     * Of a publisher: whether every message says when it was published, by the wall clock.
     *
     * @param timestamps false by default
     * @return this
     */
    public Topic timestamps(boolean timestamps) {
        this.timestamps = timestamps;
        return this;
    }

    /**
     * Of a subscriber: how it reads.
     *
     * @param policy {@link Policy#RELIABLE} by default
     * @return this
     */
    public Topic policy(Policy policy) {
        this.policy = Objects.requireNonNull(policy, "policy");
        return this;
    }

    /** {@return this, with {@link Policy#RELIABLE}} */
    public Topic reliable() {
        return policy(Policy.RELIABLE);
    }

    /** {@return this, with {@link Policy#LOSSY}} */
    public Topic lossy() {
        return policy(Policy.LOSSY);
    }

    /** {@return this, with {@link Policy#LATEST}} */
    public Topic latest() {
        return policy(Policy.LATEST);
    }

    /**
     * Of a subscriber: a name for those who watch, and what durable finds its position by. A reliable subscriber's is its alone
     * while it is attached (BUSY).
     *
     * @param label at most 64 bytes of UTF-8; empty, the default, is none
     * @return this
     */
    public Topic label(String label) {
        this.label = Objects.requireNonNull(label, "label");
        return this;
    }

    /**
     * Of a reliable subscriber with a label: whether its position stays when it closes or dies, for the next one with the label.
     * The publisher waits for it all the while, also when nobody is there: see {@link Subscriber#unsubscribe}.
     *
     * @param durable false by default
     * @return this
     */
    public Topic durable(boolean durable) {
        this.durable = durable;
        return this;
    }

    /** {@return this; of a subscriber: it begins at the oldest message that is intact, the default of a reliable one} */
    public Topic fromOldest() {
        return start(Start.Kind.OLDEST, 0);
    }

    /** {@return this; of a subscriber: it begins after the newest message, the default of a lossy one} */
    public Topic fromNow() {
        return start(Start.Kind.NOW, 0);
    }

    /**
     * Of a subscriber: it begins with up to so many messages that were published before, as many as are intact.
     *
     * @param messages 0 or more
     * @return this
     */
    public Topic history(long messages) {
        return start(Start.Kind.HISTORY, messages);
    }

    /**
     * Of a subscriber: it begins after the message with this number, or at the oldest intact one; the first message then says how many
     * were lost. A number that the topic has not reached begins after the newest message.
     *
     * @param seq 0 or more
     * @return this
     */
    public Topic afterSeq(long seq) {
        return start(Start.Kind.AFTER_SEQ, seq);
    }

    private Topic start(Start.Kind kind, long number) {
        refuse(number < 0, "a start at " + number + ": expected 0 or more");
        start = new Start(kind, number);
        return this;
    }

    /**
     * Of a subscriber that nobody waits for: whether it opens the file only for reading, as another user may (mode 0644). It is
     * seen by nobody, and cannot be woken: it checks every millisecond while it waits. With open only.
     *
     * @param readOnly false by default
     * @return this
     */
    public Topic readOnly(boolean readOnly) {
        this.readOnly = readOnly;
        return this;
    }

    /**
     * Whether a new topic keeps its name when its last handle goes.
     *
     * @param persistent false by default
     * @return this
     */
    public Topic persistent(boolean persistent) {
        options = options.withPersistent(persistent);
        return this;
    }

    /**
     * Lets create, and only that, throw away what durable subscribers have not received, if all users are dead.
     *
     * @param discard false by default
     * @return this
     */
    public Topic discard(boolean discard) {
        options = options.withDiscard(discard);
        return this;
    }

    /**
     * The permission bits of a new topic's file, whatever the umask.
     *
     * @param mode 0600 by default
     * @return this
     */
    public Topic mode(int mode) {
        options = options.withMode(mode);
        return this;
    }

    /**
     * How long opening waits for a name that is not there yet, and for a role, label or slot that is taken.
     *
     * @param timeout not at all by default
     * @return this
     */
    public Topic timeout(Duration timeout) {
        options = options.withTimeout(timeout);
        return this;
    }

    /**
     * How blocking calls of the handle wait.
     *
     * @param waitMode {@link WaitMode#HYBRID} by default
     * @return this
     */
    public Topic waitMode(WaitMode waitMode) {
        options = options.withWaitMode(waitMode);
        return this;
    }

    /**
     * Whether a file system that is not in memory will do.
     *
     * @param allowDisk false by default
     * @return this
     */
    public Topic allowDisk(boolean allowDisk) {
        options = options.withAllowDisk(allowDisk);
        return this;
    }

    /**
     * As {@link Options#membarrier}.
     *
     * @param membarrier true by default
     * @return this
     */
    public Topic membarrier(boolean membarrier) {
        options = options.withMembarrier(membarrier);
        return this;
    }

    /**
     * Whether the data is locked in memory; an error names RLIMIT_MEMLOCK if that is in the way.
     *
     * @param lockMemory false by default
     * @return this
     */
    public Topic lockMemory(boolean lockMemory) {
        options = options.withLockMemory(lockMemory);
        return this;
    }

    /**
     * Whether the whole data is faulted in now instead of on first use.
     *
     * @param prefault false by default
     * @return this
     */
    public Topic prefault(boolean prefault) {
        options = options.withPrefault(prefault);
        return this;
    }

    /**
     * Whether the data is put into huge pages, which is checked.
     *
     * @param hugePages false by default
     * @return this
     */
    public Topic hugePages(boolean hugePages) {
        options = options.withHugePages(hugePages);
        return this;
    }

    /**
     * The NUMA node that a new topic's data is put on, and where an existing one's has to be.
     *
     * @param numaNode -1, the default, is any
     * @return this
     */
    public Topic numaNode(int numaNode) {
        options = options.withNumaNode(numaNode);
        return this;
    }
}
