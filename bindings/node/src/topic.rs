//! Topics: how they are opened, and what their ends have besides those of a ring.

use crate::buffer::{Buffer, Owner, over};
use crate::endpoint::{Core, NativeEndpoint, Positions, unless_late, wait_limit};
use crate::error::{OrThrow, refuse};
use crate::handle::Shared;
use crate::opening::{Attempt, GoOn, blocking, promise};
use crate::options::TopicSettings;
use napi::bindgen_prelude::*;
use napi_derive::napi;
use ramway::topic::raw::{Area, SubscriberAt};
use ramway::{ErrorKind, TopicBuilder};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

fn builder(intent: &str, name: &str, settings: &TopicSettings) -> Result<TopicBuilder> {
    settings.apply(match intent {
        "create" => ramway::Topic::create(name),
        "open" => ramway::Topic::open(name),
        _ => ramway::Topic::open_or_create(name),
    })
}

fn open(builder: TopicBuilder, publisher: bool, go_on: GoOn<'_>) -> ramway::Result<Core> {
    if publisher {
        builder.publisher_while(go_on).map(Core::Publisher)
    } else {
        builder.subscriber_while(go_on).map(Core::Subscriber)
    }
}

/// An end of a topic. `intent` is "create", "open" or "openOrCreate".
#[napi(ts_return_type = "Promise<NativeEndpoint>")]
pub fn open_topic<'env>(
    env: &'env Env,
    attempt: &Attempt,
    publisher: bool,
    intent: String,
    name: String,
    settings: TopicSettings,
) -> Result<Object<'env>> {
    let builder = builder(&intent, &name, &settings)?;
    let finish = move |_: &Env, end| NativeEndpoint::wrap(end, Some(name));
    promise(env, attempt, move |go_on| open(builder, publisher, go_on), finish)
}

#[napi]
pub fn open_topic_sync(
    env: Env,
    publisher: bool,
    intent: String,
    name: String,
    settings: TopicSettings,
) -> Result<NativeEndpoint> {
    let builder = builder(&intent, &name, &settings)?;
    NativeEndpoint::wrap(blocking(&env, |go_on| open(builder, publisher, go_on))?, Some(name))
}

/// What an end of a topic works on besides a ring's memory.
#[napi(object, object_from_js = false)]
pub struct TopicMemory {
    /// The subscribers' area. Read-only where the topic was opened so.
    #[napi(ts_type = "ArrayBuffer")]
    pub area: Buffer,
    /// Numbers that both halves have, see `Notes`.
    #[napi(ts_type = "ArrayBuffer")]
    pub notes: Buffer,
    /// Where in the area the subscriber's slot is, in bytes; -1: it has none.
    pub slot: i32,
    /// How it reads: "reliable", "lossy" or "latest".
    pub policy: &'static str,
    /// A reliable subscriber may be ejected while it reads.
    pub copies: bool,
    /// It was ejected, which it is to be told.
    pub lagged: bool,
}

/// Numbers of 64 bits that both halves of an end have, beside the positions: each writes what it has changed before the other
/// one goes on. On one thread: atomic for the types alone.
///
/// | | of a publisher | of a subscriber |
/// | --- | --- | --- |
/// | 0 | how far it may write, less the capacity | what is released |
/// | 1 | the subscribers' word as last acted upon | the publisher's position as last seen |
/// | 2 | the number of the next message | the number that the next message should have |
/// | 3 | where the last published frame begins | how many messages were lost |
/// | 4 | the time | |
#[derive(Default)]
pub(crate) struct Notes([AtomicU64; 5]);

impl Notes {
    /// Those of an end of a topic.
    pub(crate) fn of(core: &Core) -> Option<Arc<Self>> {
        matches!(core, Core::Publisher(_) | Core::Subscriber(_)).then(Arc::default)
    }

    fn get(&self, index: usize) -> u64 {
        // Relaxed, here and below: one thread.
        self.0[index].load(Ordering::Relaxed)
    }

    fn set(&self, values: [u64; 4]) {
        for (note, value) in self.0.iter().zip(values) {
            note.store(value, Ordering::Relaxed);
        }
    }

    /// Has the core go on where the JavaScript half is.
    pub(crate) fn follow(&self, core: &mut Core) {
        match core {
            Core::Publisher(end) => end.follow_publisher(self.get(2), self.get(3)),
            Core::Subscriber(end) => {
                end.follow_subscriber(SubscriberAt { expected: self.get(2), lost: self.get(3) });
            }
            Core::Sender(_) | Core::Receiver(_) => {}
        }
    }

    /// Notes where the core is.
    pub(crate) fn write(&self, core: &mut Core) {
        let start = core.end().start();
        match core {
            Core::Publisher(end) => {
                let at = end.publisher_at();
                self.set([start.peer, at.word, at.seq, at.last]);
            }
            Core::Subscriber(end) => {
                let at = end.subscriber_at();
                self.set([start.own, start.peer, at.expected, at.lost]);
            }
            Core::Sender(_) | Core::Receiver(_) => {}
        }
    }

    /// What the JavaScript half begins with.
    pub(crate) fn memory(
        self: &Arc<Self>,
        env: &Env,
        core: &mut Core,
        owner: &Arc<Shared<Core>>,
    ) -> Result<TopicMemory> {
        self.write(core);
        let owner: Owner = Arc::clone(owner) as Owner;
        let (area, policy, copies, lagged) = match core {
            Core::Publisher(end) => (end.area(), "", false, false),
            Core::Subscriber(end) => (end.area(), policy_name(end.policy()), end.copies_out(), end.has_lagged()),
            Core::Sender(_) | Core::Receiver(_) => return Err(refuse(ErrorKind::InvalidArgument, "no end of a topic")),
        };
        let Area { start, len, slot } = area;
        // SAFETY: the area is mapped while the end is open; `close` detaches this buffer first. Where it is read-only,
        // JavaScript does not write to it.
        let area = unsafe { over(env, start.cast_mut(), len, owner) }?;
        // SAFETY: atomics, which the buffer's owner keeps where they are.
        let notes = unsafe { over(env, self.0.as_ptr().cast_mut().cast(), size_of::<Self>(), Arc::clone(self)) }?;
        let slot = slot.map_or(-1, |slot| slot as i32);
        Ok(TopicMemory { area, notes, slot, policy, copies, lagged })
    }
}

fn policy_name(policy: ramway::Policy) -> &'static str {
    match policy {
        ramway::Policy::Reliable => "reliable",
        ramway::Policy::Lossy => "lossy",
        ramway::Policy::Latest => "latest",
    }
}

/// A subscriber, as the publisher sees it.
#[napi(object, object_from_js = false)]
pub struct NativeSubscriber {
    pub slot: u32,
    pub policy: &'static str,
    pub label: String,
    pub durable: bool,
    pub alive: bool,
    pub ejected: bool,
    pub epoch: u32,
    pub lag: Option<NativeLag>,
    pub lost: f64,
    /// In milliseconds.
    pub blocks_for: Option<f64>,
}

/// How far a subscriber is behind.
#[napi(object, object_from_js = false)]
pub struct NativeLag {
    pub bytes: f64,
    pub messages: f64,
}

fn lag(lag: ramway::Lag) -> NativeLag {
    NativeLag { bytes: lag.bytes as f64, messages: lag.messages as f64 }
}

fn none<T>() -> Result<T> {
    Err(refuse(ErrorKind::Unsupported, "the other side of a topic has this"))
}

/// Of a topic.
#[napi]
impl NativeEndpoint {
    /// Writes the time to the notes.
    #[napi]
    pub fn stamp(&self) {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        if let Some(notes) = &self.notes {
            notes.0[4].store(now.as_nanos() as u64, Ordering::Relaxed);
        }
    }

    /// The number of the last published message.
    #[napi]
    pub fn seq(&self, at: Positions) -> Result<f64> {
        self.at(&at, |core| if let Core::Publisher(end) = core { Ok(end.seq() as f64) } else { none() })
    }

    #[napi]
    pub fn skip_seq(&self, at: Positions, lost: f64) -> Result<()> {
        self.at(&at, |core| if let Core::Publisher(end) = core { end.skip_seq(lost as u64).or_throw() } else { none() })
    }

    #[napi]
    pub fn subscribers(&self, at: Positions) -> Result<Vec<NativeSubscriber>> {
        self.at(&at, |core| {
            let Core::Publisher(end) = core else { return none() };
            let shown = |one: ramway::SubscriberInfo| NativeSubscriber {
                slot: one.slot,
                policy: policy_name(one.policy),
                label: one.label,
                durable: one.durable,
                alive: one.alive,
                ejected: one.ejected,
                epoch: one.epoch,
                lag: one.lag.map(lag),
                lost: one.lost as f64,
                blocks_for: one.blocks_for.map(|time| time.as_secs_f64() * 1e3),
            };
            Ok(end.subscribers().into_iter().map(shown).collect())
        })
    }

    /// Waits up to this long for so many reliable subscribers; false: they are not there.
    #[napi]
    pub fn wait_for_subscribers(&self, at: Positions, count: u32, milliseconds: f64) -> Result<bool> {
        let limit = wait_limit(milliseconds);
        self.at(&at, |core| {
            let Core::Publisher(end) = core else { return none() };
            Ok(unless_late(end.wait_for_count(count as usize, limit))?.is_some())
        })
    }

    #[napi]
    pub fn lag(&self, at: Positions) -> Result<NativeLag> {
        self.at(&at, |core| if let Core::Subscriber(end) = core { Ok(lag(end.lag())) } else { none() })
    }

    /// Moves on to the newest message; gives how many that leaves out.
    #[napi]
    pub fn skip_to_newest(&self, at: Positions) -> Result<f64> {
        self.at(&at, |core| {
            let Core::Subscriber(end) = core else { return none() };
            Ok(end.skip_to_newest().or_throw()? as f64)
        })
    }
}
