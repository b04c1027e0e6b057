//! `open topic=`, and what only a topic's messages say.

use std::time::Duration;

use ramway::ring::log::Log;
use ramway::{Message, MessageView, Ring, Topic, TopicBuilder};

use crate::Stop;
use crate::ends::{Ends, OPEN_TIMEOUT};
use crate::line::Line;

/// What a message was sent with.
pub(crate) struct Came {
    pub(crate) type_id: u32,
    pub(crate) tag: u64,
    /// Of a topic: its number, and how many were lost right before it.
    pub(crate) stamp: Option<(u64, u64)>,
}

/// A kind of log, as far as `produce` and `consume` see a difference.
pub(crate) trait Kind: Log {
    /// Its messages have numbers.
    const NUMBERED: bool;
    /// The longest message of one with this capacity.
    fn longest(capacity: usize) -> u64;
    fn message(message: &Message<'_, Self>) -> Came;
    fn view(view: &MessageView<'_, Self>) -> Came;
    fn copy(meta: &Self::Meta) -> Came;
}

impl Kind for Ring {
    const NUMBERED: bool = false;

    fn longest(capacity: usize) -> u64 {
        (capacity as u64 - 16).min((1 << 31) - 17)
    }

    fn message(message: &Message<'_>) -> Came {
        Came { type_id: message.type_id(), tag: message.tag(), stamp: None }
    }

    fn view(view: &MessageView<'_>) -> Came {
        Came { type_id: view.type_id(), tag: view.tag(), stamp: None }
    }

    fn copy(meta: &Self::Meta) -> Came {
        Came { type_id: meta.type_id, tag: meta.tag, stamp: None }
    }
}

impl Kind for Topic {
    const NUMBERED: bool = true;

    fn longest(capacity: usize) -> u64 {
        (capacity as u64 / 2 - 32).min((1 << 31) - 33)
    }

    fn message(message: &Message<'_, Self>) -> Came {
        Came { type_id: message.type_id(), tag: message.tag(), stamp: Some((message.seq(), message.lost())) }
    }

    fn view(view: &MessageView<'_, Self>) -> Came {
        Came { type_id: view.type_id(), tag: view.tag(), stamp: Some((view.seq(), view.lost())) }
    }

    fn copy(meta: &Self::Meta) -> Came {
        Came { type_id: meta.type_id, tag: meta.tag, stamp: Some((meta.seq, meta.lost)) }
    }
}

/// Where a subscriber begins.
fn begins(builder: TopicBuilder, from: &str) -> Result<TopicBuilder, Stop> {
    let wrong = || Stop::Refused(format!("from={from}"));
    let (place, number) = from.split_once(':').unwrap_or((from, "0"));
    let number: u64 = number.parse().map_err(|_| wrong())?;
    Ok(match place {
        "oldest" => builder.from_oldest(),
        "now" => builder.from_now(),
        "history" => builder.history(number),
        "after" => builder.after_seq(number),
        _ => return Err(wrong()),
    })
}

/// Opens one side, and says so.
pub(crate) fn open(ends: &mut Ends, name: &str, role: &str, mut line: Line) -> Result<(), Stop> {
    let mut builder = if line.yes("create") {
        Topic::create(name).capacity(line.get("capacity", 65536)?).align(line.get("align", 32)?)
    } else {
        Topic::open(name)
    };
    let timeout = line.maybe("timeout")?.map_or(OPEN_TIMEOUT, Duration::from_millis);
    builder = builder.timeout(timeout).wait_policy(line.wait()?);
    let [policy, label, from] = ["policy", "label", "from"].map(|key| line.text(key));
    let durable = line.yes("durable");
    let (eject_after, wait_for) = (line.maybe("eject_after")?, line.maybe("wait_for")?);
    line.end()?;
    if let Some(ms) = eject_after {
        builder = builder.eject_after(Duration::from_millis(ms));
    }
    builder = match policy.as_deref() {
        None => builder,
        Some("reliable") => builder.reliable(),
        Some("lossy") => builder.lossy(),
        Some("latest") => builder.latest(),
        Some(other) => return Err(Stop::Refused(format!("policy={other}"))),
    };
    if let Some(label) = label {
        builder = builder.label(label);
    }
    if let Some(from) = from {
        builder = begins(builder, &from)?;
    }
    builder = builder.durable(durable);
    let (epoch, peer, capacity) = if role == "consumer" {
        if wait_for.is_some() {
            return Err(Stop::Refused("wait_for is a producer's".to_owned()));
        }
        let rx = ends.subscriber.insert(builder.subscriber()?);
        (rx.epoch(), rx.peer_epoch(), rx.capacity())
    } else {
        let tx = ends.publisher.insert(builder.publisher()?);
        if let Some(count) = wait_for {
            tx.wait_for_subscribers_timeout(count, OPEN_TIMEOUT)?;
        }
        (tx.epoch(), tx.peer_epoch(), tx.capacity())
    };
    let (pid, max) = (std::process::id(), Topic::longest(capacity));
    println!("attached pid={pid} epoch={epoch} peer_epoch={peer} capacity={capacity} max={max}");
    Ok(())
}
