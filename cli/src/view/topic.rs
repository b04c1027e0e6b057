//! A topic as `ls`, `inspect` and `doctor` show it: who publishes, who subscribes how, who is behind.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ramway::facts::{BYTE_PUBLISHER, BYTE_SLOT};
use ramway::survey::{self, Segment};
use ramway::{Policy, survey::Subscriber};
use serde::Serialize;

use super::RoleView;
use crate::output::printable;
use crate::procs::Holder;
use crate::units::size;

/// A topic.
#[derive(Serialize)]
pub struct TopicView {
    pub data_offset: u64,
    pub capacity: u64,
    pub align: u32,
    pub subs_offset: u64,
    pub slots: u32,
    pub lossy_only: bool,
    pub may_eject: bool,
    pub tail: u64,
    pub last: u64,
    pub claim: u64,
    pub publisher: PublisherView,
    /// Subscribers that live and have a slot.
    pub reliable: usize,
    pub lossy: usize,
    pub latest: usize,
    /// How often a subscriber came or went (modulo 2^32).
    pub changes: u32,
    pub has_sleeper: bool,
    /// The newest message; null before the first.
    pub newest: Option<NewestView>,
    /// Everybody who has a slot, also durable subscribers without a process and those that died.
    pub subscribers: Vec<SubscriberView>,
    pub damage: Option<String>,
}

/// The publisher's role.
#[derive(Serialize)]
pub struct PublisherView {
    pub pid: Option<u32>,
    pub command: Option<String>,
    pub alive: bool,
    /// Null: it waits for reliable subscribers as long as their processes live.
    pub eject_after_s: Option<f64>,
    #[serde(flatten)]
    pub role: RoleView,
}

/// The newest message of a topic.
#[derive(Serialize)]
pub struct NewestView {
    pub seq: u64,
    /// Nanoseconds since 1970, and how long ago that is; null if the publisher does not stamp.
    pub time_ns: Option<u64>,
    pub age_s: Option<f64>,
    pub len: u32,
    pub type_id: u32,
    pub tag: u64,
}

/// A subscriber that has a slot.
#[derive(Serialize)]
pub struct SubscriberView {
    pub slot: u32,
    /// `reliable`, `lossy` or `latest`.
    pub policy: &'static str,
    pub label: Option<String>,
    pub pid: Option<u32>,
    pub command: Option<String>,
    /// A living process has the slot.
    pub alive: bool,
    pub durable: bool,
    pub ejected: bool,
    /// The publisher sleeps, and this is the subscriber that is farthest behind.
    pub blocks: bool,
    pub epoch: u32,
    /// Of a reliable one; the others do not say how far they have read.
    pub cursor: Option<u64>,
    pub lag_bytes: Option<u64>,
    /// Null also if its next message cannot be read any more, or just now.
    pub lag_messages: Option<u64>,
    /// With `latest`, how many it has skipped.
    pub lost: u64,
    pub eject_seq: u64,
    pub close_seen: u32,
}

impl TopicView {
    /// Of a segment that is a topic, with those who hold its locks.
    pub fn new(segment: &Segment, topic: &survey::Topic, holders: &[Holder]) -> Self {
        // Only an exclusive lock is a life.
        let holder = |byte| holders.iter().find(|holder| holder.byte == byte && holder.exclusive);
        let is_behind = |one: &&Subscriber| one.gating && one.lag_bytes >= topic.capacity / 2;
        // A message takes at most half of the log, so who is less behind blocks none.
        let slowest = topic.subscribers.iter().filter(is_behind).map(|one| one.lag_bytes).max();
        let sleeps = segment.producer_held && topic.publisher.wait != 0;
        let subscribers: Vec<SubscriberView> = topic
            .subscribers
            .iter()
            .map(|one| {
                let holder = holder(BYTE_SLOT + u64::from(one.slot));
                let policy = one.policy();
                let reliable = |value| (policy == Policy::Reliable).then_some(value);
                SubscriberView {
                    slot: one.slot,
                    policy: policy_name(policy),
                    label: one.label.clone(),
                    pid: holder.map(|holder| holder.pid),
                    command: holder.map(|holder| holder.command.clone()),
                    alive: one.held,
                    durable: one.durable,
                    ejected: one.ejected,
                    blocks: sleeps && one.gating && slowest == Some(one.lag_bytes),
                    epoch: one.epoch,
                    cursor: reliable(one.cursor),
                    lag_bytes: reliable(one.lag_bytes),
                    lag_messages: one.lag_messages.and_then(reliable),
                    lost: one.lost,
                    eject_seq: one.eject_seq,
                    close_seen: one.close_seen,
                }
            })
            .collect();
        let living = |policy| subscribers.iter().filter(|one| one.alive && one.policy == policy_name(policy)).count();
        let (reliable, lossy, latest) = (living(Policy::Reliable), living(Policy::Lossy), living(Policy::Latest));
        let publisher = holder(BYTE_PUBLISHER).filter(|_| segment.producer_held);
        Self {
            data_offset: topic.data_offset,
            capacity: topic.capacity,
            align: topic.align,
            subs_offset: topic.subs_offset,
            slots: topic.slots,
            lossy_only: topic.lossy_only,
            may_eject: topic.may_eject,
            tail: topic.tail,
            last: topic.last,
            claim: topic.claim,
            publisher: PublisherView {
                pid: publisher.map(|holder| holder.pid),
                command: publisher.map(|holder| holder.command.clone()),
                alive: segment.producer_held,
                eject_after_s: topic.eject_after.map(|time| time.as_secs_f64()),
                role: RoleView { close_seen: None, ..RoleView::new(&topic.publisher) },
            },
            reliable,
            lossy,
            latest,
            changes: topic.changes,
            has_sleeper: topic.has_sleeper,
            newest: topic.newest.as_ref().map(NewestView::new),
            subscribers,
            damage: topic.damage.clone(),
        }
    }

    /// Bytes that the slowest of those whom the publisher waits for has not released; `None` if it waits for nobody.
    pub fn fill(&self) -> Option<u64> {
        self.slowest().and_then(|one| one.lag_bytes)
    }

    /// Who is farthest behind of those whom the publisher waits for.
    pub fn slowest(&self) -> Option<&SubscriberView> {
        self.subscribers.iter().filter(|one| one.gates()).max_by_key(|one| one.lag_bytes)
    }

    /// Who publishes, who subscribes, and who is behind, in words. `others`: processes that have it open without a slot.
    pub fn summary(&self, others: usize) -> String {
        let mut parts = vec![self.publisher.shown()];
        let mut kinds: Vec<String> = [(self.reliable, "reliable"), (self.lossy, "lossy"), (self.latest, "latest")]
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, policy)| format!("{count} {policy}"))
            .collect();
        if others > 0 {
            kinds.push(format!("{others} without a slot"));
        }
        parts.push(if kinds.is_empty() { "no subscribers".into() } else { kinds.join(", ") });
        if let Some(slowest) = self.slowest().filter(|one| one.lag_bytes != Some(0)) {
            let blocks = if slowest.blocks { ", blocks the publisher" } else { "" };
            parts.push(format!("{} is {} behind{blocks}", slowest.name(), slowest.lag()));
        }
        for one in &self.subscribers {
            let name = one.name();
            if one.ejected {
                parts.push(format!("{name} was ejected"));
            }
            if !one.alive {
                parts.push(if one.durable { format!("{name} has no process") } else { format!("{name} died") });
            }
            parts.extend(one.lost().filter(|lost| *lost > 0).map(|lost| format!("{name} lost {lost}")));
        }
        parts.join("; ")
    }

    /// What keeps, or will soon keep, a publisher from going on, and what helps.
    pub fn troubles(&self, topic: &str) -> Vec<(String, String)> {
        let mut troubles = Vec::new();
        if let Some(damage) = &self.damage {
            troubles.push((format!("`{topic}` is damaged: {damage}"), format!("ramway unlink {topic}")));
        }
        for one in self.subscribers.iter().filter(|one| one.gates()) {
            // Below that no message has to wait for it.
            let is_behind = one.lag_bytes.is_some_and(|lag| lag >= self.capacity / 2);
            let (name, lag) = (one.name(), one.lag());
            match one.label() {
                Some(label) if is_behind && !one.alive && one.durable => troubles.push((
                    format!(
                        "`{topic}` waits for the durable subscriber {name}, which has no process and is {lag} behind"
                    ),
                    format!("start it again, or `ramway sub {topic} --unsubscribe --label {}`", quoted(&label)),
                )),
                _ if one.blocks => troubles.push((
                    format!("`{topic}` waits for the subscriber {name}, which is {lag} behind"),
                    format!("see what its process does (`ramway inspect {topic}`), or publish with --eject-after"),
                )),
                _ => {}
            }
        }
        troubles
    }
}

impl PublisherView {
    fn shown(&self) -> String {
        match (self.pid, &self.command) {
            (Some(pid), Some(command)) => format!("publisher {pid} {command}"),
            _ if self.alive => "a publisher that is not visible from here".into(),
            _ => "no publisher".into(),
        }
    }
}

impl SubscriberView {
    /// Whether the publisher waits for it.
    fn gates(&self) -> bool {
        self.lag_bytes.is_some() && !self.ejected
    }

    /// Its label, fit for a terminal: any process that may write to the topic can put anything there.
    pub fn label(&self) -> Option<String> {
        self.label.as_ref().map(|label| printable(label).replace('\n', "\\n"))
    }

    /// Its label, else its process, else its slot.
    pub fn name(&self) -> String {
        match (self.label(), self.pid) {
            (Some(label), _) => format!("`{label}`"),
            (None, Some(pid)) => pid.to_string(),
            (None, None) => format!("slot {}", self.slot),
        }
    }

    /// The process that has it.
    pub fn process(&self) -> String {
        match (self.pid, &self.command) {
            (Some(pid), Some(command)) => format!("{pid} {command}"),
            _ if self.alive => "not visible".into(),
            _ => "none".into(),
        }
    }

    /// How far it is behind, in words.
    pub fn lag(&self) -> String {
        match (self.lag_bytes, self.lag_messages) {
            (None, _) => "-".into(),
            (Some(0), _) => "0".into(),
            (Some(bytes), Some(messages)) => format!("{messages} message(s), {}", size(bytes)),
            (Some(bytes), None) => size(bytes),
        }
    }

    /// How many messages it has lost. What a subscriber to the newest message skips is not lost.
    pub fn lost(&self) -> Option<u64> {
        (self.policy != policy_name(Policy::Latest)).then_some(self.lost)
    }

    /// What else is to be said of it.
    pub fn state(&self) -> String {
        let words: Vec<&str> = [
            (self.durable, "durable"),
            (self.ejected, "ejected"),
            (!self.alive && !self.durable, "died"),
            (self.blocks, "blocks the publisher"),
        ]
        .iter()
        .filter(|word| word.0)
        .map(|word| word.1)
        .collect();
        words.join(", ")
    }
}

impl NewestView {
    fn new(newest: &survey::Newest) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let stamped = (newest.time_ns != 0).then_some(newest.time_ns);
        Self {
            seq: newest.seq,
            time_ns: stamped,
            age_s: stamped.map(|time| now.saturating_sub(Duration::from_nanos(time)).as_secs_f64()),
            len: newest.len,
            type_id: newest.type_id,
            tag: newest.tag,
        }
    }
}

/// A label as one word of a shell's command, which people copy: whoever may write to the topic can put anything there.
fn quoted(label: &str) -> String {
    format!("'{}'", label.replace('\'', r"'\''"))
}

fn policy_name(policy: Policy) -> &'static str {
    match policy {
        Policy::Reliable => "reliable",
        Policy::Lossy => "lossy",
        Policy::Latest => "latest",
    }
}
