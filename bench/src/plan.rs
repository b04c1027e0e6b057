//! What is measured: groups of rows that are compared with each other, and who takes part.

use crate::case::{Burst, Mode, Test};
use crate::report::Group;
use serde::{Deserialize, Serialize};
use std::time::Duration;

mod csharp;
mod go;
mod jvm;
mod node;
mod pool;
mod rpc;
mod topic;

pub(crate) use csharp::CSHARP;
pub(crate) use go::GO;
pub(crate) use jvm::JVM;
pub(crate) use node::NODE;
pub(crate) use pool::POOLS;
pub(crate) use rpc::{CALLERS, IN_LANGUAGES};
pub(crate) use topic::{FANS, PYTHON_FANS};

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Plan {
    /// Under a minute: the groups that nearly all bars need.
    Quick,
    /// A few minutes: every kind of group.
    Standard,
    /// Everything: the largest messages and areas too, and enough round trips to find a rare lost wake-up.
    Full,
}

impl Plan {
    /// As the command line spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Standard => "standard",
            Self::Full => "full",
        }
    }
}

/// A group, and how it is measured.
#[derive(Clone, Debug)]
pub(crate) struct GroupPlan {
    /// As the report has it; `rounds` is filled in by the run.
    pub(crate) group: Group,
    /// What every candidate does at a stretch. The run scales `count` to a few milliseconds.
    pub(crate) burst: Burst,
    /// What a candidate does that cannot do `burst`: the first of these that it can. A signal carries no bytes, a
    /// kernel's file sleeps where others would poll.
    pub(crate) others: Vec<Burst>,
    /// Mechanisms that take part if they can. What is not there (a peer that was never built) is no row.
    pub(crate) candidates: Vec<Candidate>,
    /// How long the rounds go on, the warm-up included.
    pub(crate) budget: Duration,
    /// Operations of each row that must count, however long that takes; 0: as many as there is time for.
    pub(crate) at_least: u64,
    /// Whether the two processors are exchanged.
    pub(crate) swapped: bool,
}

/// A mechanism of a group.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    /// Its name.
    pub(crate) mechanism: String,
    /// Bytes of buffering.
    pub(crate) capacity: u64,
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Who carries bytes there and back, or one way. Each says itself which of it it can.
const CARRIERS: &str = "\
    ring bus bus-c bus-tokio ring-copy ring-disk \
    hand-ring mutex-ring uring-futex shm-by-hand seq-cst \
    pipe uds uds-epoll seqpacket tcp mqueue";
/// Other libraries that do.
pub(crate) const PEERS: &str = "\
    tachyon tachyon-default iceoryx2 ipc-ring ipmpsc ipc-channel zmq tonic redis rtrb";
/// Between Python processes: the interpreter's own floor, Ramway, other libraries, the standard library.
pub(crate) const PYTHON: &str = "\
    list-python ring-python tachyon-python iceoryx2-python zmq-python pipe-python queue-python";
/// What only the Python worker has besides: a sender in Rust, and a copy.
pub(crate) const PYTHON_OTHERS: &str = "ring-rust-python shared-memory-python";
/// Those that the bars name: each peer costs a group a quarter of a second, and the quick plan has a minute.
const NEAREST: &str = "tachyon tachyon-default iceoryx2";
/// Who carries nothing but that something happened.
const SIGNALS: &str = "raw-flag futex region eventfd";
/// Who sleeps until something happens, for the groups that take long for each of them.
const SLEEPERS: &str = "ring bus region futex hand-ring uds pipe tachyon iceoryx2";
/// One process that goes over memory.
const MEMORY: &str = "private private-huge region-map region-huge";

/// The groups of a plan, in the order in which they are measured.
pub(crate) fn groups(plan: Plan) -> Vec<GroupPlan> {
    let standard = plan != Plan::Quick;
    let full = plan == Plan::Full;
    let mut groups = round_trips(standard);
    groups.extend(streams(standard, full));
    groups.extend(waits(standard));
    if standard {
        groups.push(pauses(full));
        groups.extend(labour());
        groups.extend(topic::groups());
        groups.extend(rpc::groups());
        groups.extend(python());
        groups.extend(node::groups());
        groups.extend(jvm::groups());
        groups.extend(csharp::groups());
        groups.extend(go::groups());
    }
    groups.extend(pool::groups(standard));
    groups.extend(access("100M", 100 * MIB, standard));
    if full {
        groups.extend(access("1G", GIB, true));
    }
    for group in &mut groups {
        group.budget = match plan {
            Plan::Quick => Duration::from_millis(700),
            Plan::Standard => Duration::from_secs(6),
            Plan::Full => Duration::from_secs(20),
        };
    }
    groups
}

/// The same without the peers that no bar names.
pub(crate) fn nearest(mut groups: Vec<GroupPlan>) -> Vec<GroupPlan> {
    let among = |names: &str, name: &str| names.split_whitespace().any(|one| one == name);
    for group in &mut groups {
        group.candidates.retain(|one| !among(PEERS, &one.mechanism) || among(NEAREST, &one.mechanism));
    }
    groups
}

/// Every group twice, the second time with the two processors exchanged.
pub(crate) fn both_orders(groups: Vec<GroupPlan>) -> Vec<GroupPlan> {
    let twice = groups.into_iter().flat_map(|group| {
        let mut swapped = group.clone();
        swapped.swapped = true;
        swapped.group.id.push_str("-swapped");
        swapped.group.title.push_str(", processors exchanged");
        [group, swapped]
    });
    twice.collect()
}

/// What `make demo` shows, for `time` in total.
pub(crate) fn demo(time: Duration) -> Vec<GroupPlan> {
    let stream = |size, mode| of(Test::OneWay, mode, size);
    let rtt = of(Test::Rtt, Mode::Spin, 32);
    let mut groups = vec![
        group("rtt-spin", "round trip, 32 B", rtt).or(Burst { mode: Mode::Block, group: 1, ..rtt }),
        group("one-way-32-each", "32 B, one by one", stream(32, Mode::Each)),
        group("one-way-32-batch", "32 B, 32 together", stream(32, Mode::Batch)),
        group("one-way-64K-each", "64 KiB, one by one", stream(64 << 10, Mode::Each)),
    ];
    let count = groups.len() as u32;
    for group in &mut groups {
        *group = group.clone().among("bus uds pipe");
        group.budget = time / count;
    }
    groups
}

fn round_trips(standard: bool) -> Vec<GroupPlan> {
    let spin = group("rtt-spin", "round trip, 32 B (signals: 0 B), both sides polling", of(Test::Rtt, Mode::Spin, 32));
    let hybrid = group(
        "rtt-hybrid",
        "round trip, 32 B (signals: 0 B), polling a while, then asleep",
        of(Test::Rtt, Mode::Hybrid, 32),
    );
    let block = group("rtt-block", "round trip, 32 B (signals: 0 B), asleep at once", of(Test::Rtt, Mode::Block, 32));
    let carriers = |group: GroupPlan, floor| group.or_signal().among(CARRIERS).among(PEERS).among(SIGNALS).floor(floor);
    let mut groups = vec![carriers(spin, "raw-flag")];
    if standard {
        groups.push(carriers(hybrid, "hand-ring"));
    }
    groups.push(carriers(block, "futex"));
    groups
}

fn streams(standard: bool, full: bool) -> Vec<GroupPlan> {
    let sizes: &[(usize, &str, &str, bool)] = &[
        (32, "32", "32 B", true),
        (256, "256", "256 B", standard),
        (1 << 10, "1K", "1 KiB", standard),
        (4 << 10, "4K", "4 KiB", standard),
        (64 << 10, "64K", "64 KiB", true),
        (1 << 20, "1M", "1 MiB", true),
        (64 << 20, "64M", "64 MiB", full),
    ];
    let stream = |size: usize, mode: Mode, id: &str, title: String| {
        // Handing over a pointer is worth a thread's while for large buffers only.
        let scale = if size < 4 << 10 { "memcpy" } else { "memcpy pointer" };
        let ceiling = if mode == Mode::Each { "memcpy" } else { "hand-ring" };
        group(id, &title, of(Test::OneWay, mode, size))
            .among(CARRIERS)
            .among(PEERS)
            .among(scale)
            .capacity(capacity_for(size))
            .floor("hand-ring")
            .ceiling(ceiling)
    };
    let mut groups = Vec::new();
    for &(size, id, shown, wanted) in sizes {
        if wanted {
            let title = format!("one way, {shown}, every message visible at once");
            groups.push(stream(size, Mode::Each, &format!("one-way-{id}-each"), title));
        }
    }
    for (size, id, shown) in [(32, "32", "32 B"), (256, "256", "256 B"), (1 << 10, "1K", "1 KiB")] {
        let title = format!("one way, {shown}, {BATCH} published together");
        groups.push(stream(size, Mode::Batch, &format!("one-way-{id}-batch"), title));
    }
    if standard {
        let title = "one way, 1 MiB through 64 MiB: a capacity beyond the cache".to_owned();
        groups.push(stream(1 << 20, Mode::Each, "one-way-1M-in-64M", title).capacity(64 * MIB));
        let title = "one way, 2 to 4 KiB mixed, order and checksum verified".to_owned();
        let mut mixed = stream(4 << 10, Mode::Each, "one-way-mixed", title);
        mixed.burst.smallest = 2 << 10;
        groups.push(mixed);
    }
    groups
}

/// A receiver that waits for what comes now and then.
fn waits(standard: bool) -> Vec<GroupPlan> {
    let every = |mode, gap_ns| Burst { gap_ns, ..of(Test::Paced, mode, 32) };
    let wake = group("wake", "from the call that wakes to the sleeper running", of(Test::Wake, Mode::Block, 32));
    let mut groups = vec![
        wake.or_signal().among(CARRIERS).among(PEERS).among(SIGNALS).floor("futex"),
        group("paced-50us", "messages 50 µs apart, receiver polling a while, then asleep", every(Mode::Hybrid, 50_000))
            .or_signal()
            .or_asleep()
            .among(SLEEPERS)
            .floor("hand-ring"),
        group(
            "paced-1ms",
            "messages 1 ms apart, receiver polling a while, then asleep",
            every(Mode::Hybrid, 1_000_000),
        )
        .or_signal()
        .or_asleep()
        .among(SLEEPERS)
        .floor("hand-ring"),
        group("paced-50us-block", "messages 50 µs apart, receiver asleep", every(Mode::Block, 50_000))
            .or_signal()
            .among(SLEEPERS)
            .floor("futex"),
        group("paced-1ms-block", "messages 1 ms apart, receiver asleep", every(Mode::Block, 1_000_000))
            .or_signal()
            .among(SLEEPERS)
            .floor("futex"),
    ];
    if standard {
        let wait = Burst { gap_ns: 500_000_000, count: 1, ..of(Test::Idle, Mode::Hybrid, 32) };
        let title = "a receiver that waits for 0.5 s: what it costs, and how soon it wakes then";
        let among = "ring bus bus-tokio region futex uds tachyon zmq iceoryx2";
        groups.push(group("idle", title, wait).or_signal().or_asleep().among(among).floor("futex"));
        let bursts = Burst { gap_ns: 1_000_000, batch: BATCH, ..of(Test::Bursty, Mode::Hybrid, 256) };
        let title = format!("{BATCH} messages of 256 B at once, every 1 ms");
        groups.push(group("bursty", &title, bursts).or_asleep().among(SLEEPERS).floor("hand-ring"));
    }
    groups
}

/// Both sides busy for a random time between two messages: a side that is about to sleep is easily overlooked.
fn pauses(full: bool) -> GroupPlan {
    let (at_least, among) = if full { (100_000, "ring bus region futex uds tachyon") } else { (2_000, SLEEPERS) };
    let burst = Burst { gap_ns: 1_000_000, ..of(Test::Pauses, Mode::Hybrid, 32) };
    let title = "round trips after random pauses of up to 1 ms: a lost wake-up takes over 20 ms";
    let group = group("pauses", title, burst).or_signal().or_asleep().among(among).floor("futex");
    GroupPlan { at_least, ..group }
}

/// A receiver that has something to do with each message.
fn labour() -> Vec<GroupPlan> {
    let kinds = [("work-1us", "1 µs", 1_000), ("work-10us", "10 µs", 10_000), ("work-1ms", "1 ms", 1_000_000)];
    let groups = kinds.map(|(id, shown, work_ns)| {
        let burst = Burst { work_ns, group: 1, ..of(Test::OneWay, Mode::Hybrid, 256) };
        let title = format!("one way, 256 B, the receiver works {shown} on each");
        group(id, &title, burst).or_asleep().among(CARRIERS).among(PEERS).floor("hand-ring")
    });
    groups.into()
}

/// Between interpreters, and to one from a program in Rust.
fn python() -> Vec<GroupPlan> {
    let rtt = of(Test::Rtt, Mode::Spin, 32);
    let each = of(Test::OneWay, Mode::Each, 32);
    let batch = Burst { batch: PYTHON_BATCH, count: 4 * u64::from(PYTHON_BATCH), ..of(Test::OneWay, Mode::Batch, 32) };
    let title = |what: &str| format!("Python: {what}");
    let mut groups = vec![
        group("python-rtt-spin", &title("round trip, 32 B, polling where there is such a wait"), rtt)
            .or(Burst { mode: Mode::Block, group: 1, ..rtt })
            .among(PYTHON),
        group("python-one-way-32-each", &title("one way, 32 B, message by message"), each)
            .among(PYTHON)
            .floor("list-python"),
        group("python-one-way-32-batch", &title("one way, 32 B, as many in one call as there are"), batch)
            .among(PYTHON)
            .floor("list-python"),
        group("python-from-rust-32-each", &title("one way, 32 B, from Rust, message by message"), each)
            .among("list-python ring-rust-python")
            .floor("list-python"),
        group("python-from-rust-32-batch", &title("one way, 32 B, from Rust, as arrays"), batch)
            .among("list-python ring-rust-python")
            .floor("list-python"),
    ];
    for (id, shown, size) in [("8K", "8 KiB", 8 * KIB), ("8M", "8 MiB", 8 * MIB), ("800M", "800 MiB", 800 * MIB)] {
        let burst = Burst { count: 4, ..of(Test::View, Mode::Spin, size as usize) };
        let what = title(&format!("a tensor of {shown}, from asking for it to having it as a NumPy array"));
        let view = group(&format!("python-view-{id}"), &what, burst);
        groups.push(view.among("ring-python shared-memory-python").capacity(size + MIB));
    }
    groups
}

/// What a subscriber of an idle publisher has of its newest message, beside one in Rust. A language adds its own rows.
/// Two processes of one language: a round trip among some mechanisms, and streams of 32 B among others. The ring between two processes of
/// Rust is beside them, in the same rounds.
fn between_two(id: &str, language: &str, trips: &str, streams: &str) -> Vec<GroupPlan> {
    let one = |id_end: &str, what: &str, burst, among: &str| {
        group(&format!("{id}-{id_end}"), &format!("{language}: {what}"), burst).among(among).floor("ring")
    };
    let each = of(Test::OneWay, Mode::Each, 32);
    let batch = of(Test::OneWay, Mode::Batch, 32);
    vec![
        one("rtt-spin", "round trip, 32 B, both sides polling", of(Test::Rtt, Mode::Spin, 32), trips),
        one("one-way-32-each", "one way, 32 B, every message visible at once", each, streams),
        one("one-way-32-batch", "one way, 32 B, 32 together", batch, streams),
    ]
}

fn newest_value(id: &str, who: &str) -> GroupPlan {
    let burst = Burst { threads: 0, ..of(Test::Latest, Mode::Each, 64) };
    group(id, &format!("{who}: the newest value, 64 B, read back to back, an idle writer"), burst)
        .among("topic-latest topic-latest-into")
        .floor("topic-latest-into")
}

fn access(id: &str, bytes: u64, all: bool) -> Vec<GroupPlan> {
    let kinds = [
        ("read", Test::SequentialRead, "read from the first word to the last"),
        ("write", Test::SequentialWrite, "written from the first word to the last"),
        ("random", Test::RandomRead, "one word of each 4 KiB, read at random"),
    ];
    let groups = kinds.into_iter().filter(|(kind, ..)| all || *kind == "read").map(|(kind, test, title)| {
        let shown = if bytes == GIB { "1 GiB".into() } else { format!("{} MiB", bytes / MIB) };
        let burst = Burst { count: 1, ..of(test, Mode::Spin, bytes as usize) };
        group(&format!("access-{id}-{kind}"), &format!("{shown}: {title}"), burst)
            .among(MEMORY)
            .capacity(bytes)
            .floor("private")
    });
    groups.collect()
}

/// Messages that are published together.
const BATCH: u32 = 32;
/// The same where an array holds them: a call costs an interpreter as much as tens of messages.
const PYTHON_BATCH: u32 = 1024;

/// Room for a stream, as `docs/INTEGRATION.md` says: four times the longest message, and no more than fits in a second-level cache if
/// that is enough. With a ring of 8 MiB for messages of 64 KiB, every message went to memory and back: 0.67 × the rate of iceoryx2, which
/// uses its last buffers again; with 1 MiB 1.42 ×.
fn capacity_for(size: usize) -> u64 {
    MIB.max(4 * size as u64)
}

/// A burst with as many operations to a sample as keep the time stamps cheap.
fn of(test: Test, mode: Mode, size: usize) -> Burst {
    let (count, group) = match (test, mode) {
        // The counter of some machines ticks every 10 ns only. No more of them: a round trip of microseconds takes two time slices
        // on a busy machine, where the first burst, which a thousand were, took longer than a pair may be silent.
        (Test::Rtt, Mode::Spin) => (100, 10),
        (Test::Call, Mode::Spin) if size <= 1024 => (100, 10),
        (Test::Call, Mode::Hybrid) => (100, 10),
        (Test::Publish | Test::Latest, _) => (4096, 256),
        (Test::OneWay | Test::Readers | Test::Lapped | Test::Producers, _) => match size {
            ..=256 => (4096, 256),
            257..=1024 => (1024, 64),
            1025..=4096 => (512, 16),
            4097..=65536 => (64, 4),
            65537..=1_048_576 => (8, 1),
            _ => (4, 1),
        },
        _ => (20, 1),
    };
    let batch = if mode == Mode::Batch { BATCH } else { 1 };
    Burst { group, batch, ..Burst::new(test, mode, size, count) }
}

fn group(id: &str, title: &str, burst: Burst) -> GroupPlan {
    let Burst { test, mode, size, gap_ns, work_ns, .. } = burst;
    let group = Group {
        id: id.into(),
        title: title.into(),
        test,
        mode,
        size,
        capacity: MIB,
        gap_ns,
        work_ns,
        floor: None,
        ceiling: None,
        rounds: 0,
        placements: Vec::new(),
    };
    let (others, candidates, budget) = (Vec::new(), Vec::new(), Duration::ZERO);
    GroupPlan { group, burst, others, candidates, budget, at_least: 0, swapped: false }
}

impl GroupPlan {
    /// Candidates that carry no bytes do the same without them.
    fn or_signal(self) -> Self {
        let signal = Burst { size: 0, smallest: 0, ..self.burst };
        self.or(signal)
    }

    /// Candidates that cannot poll sleep.
    fn or_asleep(self) -> Self {
        let asleep = Burst { mode: Mode::Block, ..self.burst };
        let signal = Burst { size: 0, smallest: 0, ..asleep };
        let signals = self.others.iter().any(|other| other.size == 0);
        let this = self.or(asleep);
        if signals { this.or(signal) } else { this }
    }

    fn or(mut self, other: Burst) -> Self {
        self.others.push(other);
        self
    }

    fn among(mut self, names: &str) -> Self {
        let capacity = self.group.capacity;
        let candidates = names.split_whitespace().map(|name| Candidate { mechanism: name.into(), capacity });
        self.candidates.extend(candidates);
        self
    }

    fn capacity(mut self, capacity: u64) -> Self {
        self.group.capacity = capacity;
        for candidate in &mut self.candidates {
            candidate.capacity = capacity;
        }
        self
    }

    fn floor(mut self, name: &str) -> Self {
        self.group.floor = Some(name.into());
        self
    }

    fn ceiling(mut self, name: &str) -> Self {
        self.group.ceiling = Some(name.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn each_plan_holds_the_smaller_one() {
        let ids = |plan| groups(plan).into_iter().map(|group| group.group.id).collect::<Vec<_>>();
        let [quick, standard, full] = [Plan::Quick, Plan::Standard, Plan::Full].map(ids);
        assert!(quick.iter().all(|id| standard.contains(id)) && standard.iter().all(|id| full.contains(id)));
        assert_eq!(full.iter().collect::<HashSet<_>>().len(), full.len(), "an id is there twice");
        for id in ["one-way-64M-each", "access-1G-random", "pauses"] {
            assert!(full.iter().any(|known| known == id), "{id}");
        }
        assert!(!quick.iter().any(|id| id.contains("64M-each") || id.contains("1G")));
    }

    #[test]
    fn bursts_and_groups_fit_together() {
        for GroupPlan { group, burst, others, candidates, .. } in groups(Plan::Full) {
            let names: HashSet<_> = candidates.iter().map(|candidate| &candidate.mechanism).collect();
            assert_eq!(names.len(), candidates.len(), "{}: a candidate is there twice", group.id);
            for other in [&group.floor, &group.ceiling].into_iter().flatten() {
                assert!(names.contains(other), "{}: {other} takes no part", group.id);
            }
            for burst in others.iter().chain([&burst]) {
                assert!(burst.size % 8 == 0 && burst.smallest <= burst.size && burst.count > 0);
                assert_eq!(burst.count % u64::from(burst.group), 0, "{}", group.id);
            }
            let alone = burst.test.is_access() || burst.test.is_pool() || burst.test == Test::View;
            let together = u64::from(burst.batch) * (group.size as u64 + 16);
            // Calls are made one after the other: nothing is written beside a long reply.
            let at_a_time = if burst.test == Test::Call { 1 } else { 2 };
            assert!(alone || together <= group.capacity / at_a_time, "{}: no room for {at_a_time}", group.id);
        }
    }

    #[test]
    fn every_bar_has_its_groups_in_the_standard_plan() {
        // A bar that nothing can ever be measured for would look like one whose peer is missing.
        let rows = groups(Plan::Standard).into_iter().flat_map(|group| {
            let id = group.group.id;
            group.candidates.into_iter().map(move |candidate| format!("{id}/{}", candidate.mechanism))
        });
        let rows: HashSet<String> = rows.collect();
        for bar in crate::bars::bars(&crate::sample::report(Vec::new())) {
            let needs = bar.measured.strip_prefix("not measured: needs ").expect("nothing was measured");
            let row = needs.split(' ').next().expect("a word");
            assert!(rows.contains(row), "{}: {row}", bar.what);
        }
    }

    #[test]
    fn both_orders_double_every_group() {
        let groups = both_orders(groups(Plan::Quick));
        let swapped = groups.iter().filter(|group| group.swapped).count();
        assert_eq!(swapped * 2, groups.len());
        assert!(groups.iter().all(|group| group.swapped == group.group.id.ends_with("-swapped")));
    }
}
