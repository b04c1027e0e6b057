//! One to many, many to one: topics beside a ring, their latest value, `Select`, an inbox.

use super::{BATCH, GroupPlan, KIB, MIB, capacity_for, group, of};
use crate::case::{Burst, Mode, Test};

/// Other libraries' one to many, of `bench/peers`. A topic between two processes is compared with the peers that rings are
/// compared with, and with these.
pub(crate) const FANS: &str = "\
    iceoryx2-1 iceoryx2-8 iceoryx2-readers iceoryx2-blackboard iceoryx2-producers mmap-sync \
    zmq-pubsub zmq-pubsub-nodrop zmq-conflate zmq-poll-16 zmq-poll-128 zmq-producers \
    redis-pubsub redis-pubsub-pipelined redis-get redis-producers";
/// Who carries a topic's messages to one reader.
const PAIRS: &str = "ring topic iceoryx2 zmq redis";
/// Other libraries' publish-subscribe over sockets: as they are by default, and where they can be made faster or lossless.
const PUBSUB: &str = "zmq-pubsub zmq-pubsub-nodrop redis-pubsub redis-pubsub-pipelined";
/// Who has a newest value.
const VALUES: &str = "hand-seqlock topic-latest topic-latest-into mmap-sync iceoryx2-blackboard zmq-conflate redis-get";
/// A plain receive, and a wait for one of so many: `Select`, epoll over pipes, ZeroMQ's `poll`.
const SELECTS: &str = "ring select-1 select-16 select-128 select-mixed-128 epoll-16 epoll-128 zmq-poll-16 zmq-poll-128";
/// Four producers at once.
const GATHERS: &str = "rings-4 inbox-4 iceoryx2-producers zmq-producers redis-producers";
/// Between Python processes: Ramway's package, and what the standard library has.
const PYTHON_READERS: &str = "topic-python queues-python pipes-python";
const PYTHON_VALUES: &str = "topic-latest-python shared-lock-python";
const PYTHON_PRODUCERS: &str = "inbox-python queues-python";
/// All of them.
pub(crate) const PYTHON_FANS: &str =
    "topic-python topic-latest-python inbox-python queues-python pipes-python shared-lock-python";

pub(super) fn groups() -> Vec<GroupPlan> {
    let mut groups = pairs();
    groups.extend(fans());
    groups.extend(latest());
    groups.extend(selects());
    groups.extend(inboxes());
    groups.extend(python());
    groups
}

/// A topic where a ring would do.
fn pairs() -> Vec<GroupPlan> {
    let title = |what: &str| format!("Topic: {what}");
    let among = |group: GroupPlan| group.among(PAIRS).floor("ring");
    let spin = of(Test::Rtt, Mode::Spin, 32);
    let paced = Burst { gap_ns: 1_000_000, ..of(Test::Paced, Mode::Block, 32) };
    let idle = Burst { gap_ns: 500_000_000, count: 1, ..of(Test::Idle, Mode::Hybrid, 32) };
    let mut groups = vec![
        among(group("topic-rtt-spin", &title("round trip over two topics, 32 B, both sides polling"), spin)),
        group(
            "topic-rtt-block",
            &title("round trip over two topics, 32 B, asleep at once"),
            of(Test::Rtt, Mode::Block, 32),
        )
        .or_signal()
        .among(PAIRS)
        .among("futex")
        .floor("futex"),
    ];
    for (id, shown, size) in
        [("32", "32 B", 32), ("1K", "1 KiB", 1 << 10), ("64K", "64 KiB", 64 << 10), ("1M", "1 MiB", 1 << 20)]
    {
        let what = title(&format!("one way, {shown}, one reliable reader, every message visible at once"));
        let stream = group(&format!("topic-{id}-each"), &what, of(Test::OneWay, Mode::Each, size));
        let mut stream = among(stream);
        if matches!(size, 32 | 65536) {
            stream = stream.or(of(Test::Readers, Mode::Each, size)).among(PUBSUB);
        }
        groups.push(stream.capacity(capacity_for(size)));
    }
    let what = title(&format!("one way, 32 B, one reliable reader, {BATCH} published together"));
    groups.push(among(group("topic-32-batch", &what, of(Test::OneWay, Mode::Batch, 32))));
    let what = title("messages 1 ms apart, subscriber asleep");
    groups.push(group("topic-paced-1ms-block", &what, paced).or_signal().among("futex ring topic").floor("futex"));
    let what = title("a subscriber that waits for 0.5 s: what it costs, and how soon it wakes then");
    groups.push(group("topic-idle", &what, idle).or_signal().or_asleep().among("futex ring topic zmq").floor("futex"));
    groups
}

/// Several subscribers, and such as the publisher does not wait for.
fn fans() -> Vec<GroupPlan> {
    let unread = of(Test::Publish, Mode::Each, 32);
    let sleepers = Burst { threads: 8, ..of(Test::WakeAll, Mode::Block, 32) };
    let mut groups = vec![
        group("topic-publish-32", "Topic: publishing 32 B with 0 to 64 subscribers that read nothing", unread)
            .among("topic-reliable-1 topic-reliable-8 topic-reliable-64 topic-alone")
            .among("topic-lossy-1 topic-lossy-8 topic-lossy-64 iceoryx2-1 iceoryx2-8")
            .floor("topic-reliable-1"),
        group("topic-wake-8", "Topic: from the publish that wakes 8 sleepers to the last of them running", sleepers)
            .or_signal()
            .among("futex-all topic-readers")
            .floor("futex-all"),
    ];
    for (id, shown, size) in [("topic-readers-3", "32 B", 32), ("topic-readers-3-64K", "64 KiB", 64 << 10)] {
        let title = format!("Topic: one way, {shown}, three readers that read every byte");
        let readers = group(id, &title, Burst { threads: 3, ..of(Test::Readers, Mode::Each, size) });
        let readers = readers.among("topic-readers iceoryx2-readers").among(PUBSUB);
        groups.push(readers.capacity(capacity_for(size)).floor("topic-readers"));
    }
    // Little enough for the reader to be overtaken all the time.
    for (id, shown, size) in [("32", "32 B", 32), ("4K", "4 KiB", 4 << 10)] {
        let title = format!("Topic: {shown} past a lossy reader that is overtaken; received + lost = sent");
        let lapped = group(&format!("topic-lapped-{id}"), &title, of(Test::Lapped, Mode::Each, size));
        groups.push(lapped.among("topic-lossy").capacity(64 * KIB));
    }
    groups
}

/// The newest value, read back to back.
fn latest() -> Vec<GroupPlan> {
    let read = |size: usize, threads: u32, gap_ns: u64| Burst { threads, gap_ns, ..of(Test::Latest, Mode::Each, size) };
    let groups = [
        ("64", "64 B", 64, "idle", "an idle writer", 0, 0),
        ("64", "64 B", 64, "1us", "a write every µs", 1, 1000),
        ("64", "64 B", 64, "full", "a writer at full speed", 1, 0),
        ("4K", "4 KiB", 4 << 10, "1us", "a write every µs", 1, 1000),
        ("4K", "4 KiB", 4 << 10, "10us", "a write every 10 µs", 1, 10_000),
    ];
    let groups = groups.map(|(id, shown, size, rate, writer, threads, gap_ns)| {
        let title = format!("Latest: {shown}, read back to back, {writer}");
        group(&format!("latest-{id}-{rate}"), &title, read(size, threads, gap_ns)).among(VALUES).floor("hand-seqlock")
    });
    groups.into()
}

fn selects() -> Vec<GroupPlan> {
    let title = |what: &str| format!("Select: {what}, over 1, 16 and 128 rings or sockets of which one is busy");
    let each = of(Test::OneWay, Mode::Each, 32);
    let groups = [
        group("select-rtt-spin", &title("round trip, 32 B, both sides polling"), of(Test::Rtt, Mode::Spin, 32)),
        group("select-rtt-block", &title("round trip, 32 B, asleep at once"), of(Test::Rtt, Mode::Block, 32)),
        group("select-32-each", &title("one way, 32 B, a wait for each message"), each),
    ];
    // A socket is waited for asleep, whatever the rings do.
    groups.map(|group| group.or_asleep().among(SELECTS).floor("ring")).into()
}

fn inboxes() -> Vec<GroupPlan> {
    let paced = Burst { gap_ns: 1_000_000, ..of(Test::Paced, Mode::Hybrid, 32) };
    let each = |size| of(Test::OneWay, Mode::Each, size);
    let streams = [("32", "32 B", 32), ("1K", "1 KiB", 1 << 10)].map(|(id, shown, size)| {
        let title = format!("Inbox: {shown} from ten producers in turn, received one by one");
        let stream = group(&format!("inbox-{id}-each"), &title, each(size));
        stream.among("ring rings-10 inbox-10").capacity(MIB / 4).floor("rings-10")
    });
    let mut groups = Vec::from(streams);
    let title = "Inbox: messages 1 ms apart from ten producers in turn, polling a while, then asleep";
    groups.push(group("inbox-paced-1ms", title, paced).among("ring inbox-10").capacity(MIB / 4).floor("ring"));
    for (id, shown, size, capacity) in [("32", "32 B", 32, MIB / 4), ("64K", "64 KiB", 64 << 10, MIB)] {
        let title = format!("Inbox: {shown} from four producers at once to one reader");
        let burst = Burst { threads: 4, ..of(Test::Producers, Mode::Each, size) };
        let producers = group(&format!("inbox-producers-{id}"), &title, burst).among(GATHERS);
        groups.push(producers.capacity(capacity).floor("rings-4"));
    }
    groups
}

/// Between Python processes, a process for each reader and producer.
fn python() -> Vec<GroupPlan> {
    let title = |what: &str| format!("Python: {what}");
    let mut groups = Vec::new();
    for (id, shown, size) in [("32", "32 B", 32), ("64K", "64 KiB", 64 << 10)] {
        for (threads, end, who) in [(1, "", "one reader"), (3, "-readers-3", "three readers, each a process")] {
            let what = title(&format!("one way, {shown}, {who}, message by message"));
            let burst = Burst { threads, ..of(Test::Readers, Mode::Each, size) };
            let readers = group(&format!("topic-python-{id}{end}"), &what, burst).among(PYTHON_READERS);
            groups.push(readers.capacity(capacity_for(size)).floor("topic-python"));
        }
    }
    for (id, writer, gap_ns) in [("100us", "a write every 100 µs", 100_000), ("full", "a writer at full speed", 0)] {
        let what = title(&format!("the newest value, 64 B, read back to back, {writer}"));
        let burst = Burst { gap_ns, ..of(Test::Latest, Mode::Each, 64) };
        let values = group(&format!("latest-python-64-{id}"), &what, burst);
        groups.push(values.among(PYTHON_VALUES).floor("topic-latest-python"));
    }
    let what = title("32 B from four producers at once, each a process, to one reader");
    let burst = Burst { threads: 4, ..of(Test::Producers, Mode::Each, 32) };
    groups.push(group("inbox-python-32", &what, burst).among(PYTHON_PRODUCERS).capacity(MIB / 4));
    groups
}
