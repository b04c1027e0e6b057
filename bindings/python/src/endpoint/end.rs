//! The core's end behind a handle: that of a ring, or that of a topic, which has all that the ring's has.

use ramway::layout::{max_message_len, max_topic_message_len};
use ramway::ring::raw::{RawEndpoint, WaitLimit};
use ramway::ring::window::Window;
use ramway::{Publisher, Receiver, Result, Sender, Subscriber, Waker};

/// An end of a ring or of a topic.
pub(crate) enum End<R, T> {
    Ring(R),
    Topic(T),
}

pub(crate) type SenderEnd = End<Sender, Publisher>;
pub(crate) type ReceiverEnd = End<Receiver, Subscriber>;

/// A call that both kinds have. It costs a comparison: what runs for every message of a loop makes it once for the loop.
macro_rules! either {
    ($end:expr, $it:ident => $call:expr) => {
        match $end {
            $crate::endpoint::End::Ring($it) => $call,
            $crate::endpoint::End::Topic($it) => $call,
        }
    };
}
pub(crate) use either;

/// What an end is called, for texts.
pub(crate) struct Role {
    /// Its class.
    pub(crate) class: &'static str,
    pub(crate) name: &'static str,
    /// The other end.
    pub(crate) peer: &'static str,
    /// What it is an end of, and the class of that.
    pub(crate) log: &'static str,
    pub(crate) log_class: &'static str,
}

static SENDER: Role = Role { class: "Sender", name: "sender", peer: "receiver", log: "ring", log_class: "Ring" };
static RECEIVER: Role = Role { class: "Receiver", name: "receiver", peer: "sender", log: "ring", log_class: "Ring" };
static PUBLISHER: Role =
    Role { class: "Publisher", name: "publisher", peer: "subscriber", log: "topic", log_class: "Topic" };
static SUBSCRIBER: Role =
    Role { class: "Subscriber", name: "subscriber", peer: "publisher", log: "topic", log_class: "Topic" };

/// What a handle asks of its end, whichever it is.
pub(crate) trait CoreEnd {
    fn role(&self) -> &'static Role;
    fn raw_endpoint(&mut self) -> &mut dyn RawEndpoint;
    fn raw_endpoint_ref(&self) -> &dyn RawEndpoint;
    /// What ends its waits from another thread.
    fn waker(&self) -> Waker;
    /// A signal ends its waits too.
    fn let_signals_interrupt(&mut self);
    fn capacity(&self) -> usize;
    fn align(&self) -> usize;
    /// Bytes that are sent and not released.
    fn used(&self) -> usize;
    /// Bytes of the longest message that ever fits.
    fn max_message_len(&self) -> u64;
}

macro_rules! core_end {
    ($end:ident, $ring:ident, $topic:ident) => {
        impl CoreEnd for $end {
            fn role(&self) -> &'static Role {
                match self {
                    Self::Ring(_) => &$ring,
                    Self::Topic(_) => &$topic,
                }
            }

            fn raw_endpoint(&mut self) -> &mut dyn RawEndpoint {
                either!(self, end => end)
            }

            fn raw_endpoint_ref(&self) -> &dyn RawEndpoint {
                either!(self, end => end)
            }

            fn waker(&self) -> Waker {
                either!(self, end => end.waker())
            }

            fn let_signals_interrupt(&mut self) {
                either!(self, end => end.set_interruptible(true));
            }

            fn capacity(&self) -> usize {
                either!(self, end => end.capacity())
            }

            fn align(&self) -> usize {
                either!(self, end => end.align())
            }

            fn used(&self) -> usize {
                either!(self, end => end.len())
            }

            fn max_message_len(&self) -> u64 {
                match self {
                    Self::Ring(end) => max_message_len(end.capacity() as u64),
                    Self::Topic(end) => max_topic_message_len(end.capacity() as u64),
                }
            }
        }
    };
}

core_end!(SenderEnd, SENDER, PUBLISHER);
core_end!(ReceiverEnd, RECEIVER, SUBSCRIBER);

impl SenderEnd {
    /// Opens a slot.
    #[inline(always)]
    pub(crate) fn reserve(&mut self, len: usize, wait_limit: WaitLimit) -> Result<*mut u8> {
        match self {
            Self::Ring(end) => end.raw().reserve(len, wait_limit),
            Self::Topic(end) => reserve(end, len, wait_limit),
        }
    }

    /// Makes the open slot a message.
    #[inline(always)]
    pub(crate) fn commit(&mut self, len: usize, type_id: u32, tag: u64, flush: bool) -> Result<()> {
        match self {
            Self::Ring(end) => end.raw().commit(len, type_id, tag, flush),
            Self::Topic(end) => commit(end, len, type_id, tag, flush),
        }
    }

    /// Gives the open slot up.
    pub(crate) fn abort(&mut self) {
        either!(self, end => end.raw().abort());
    }

    pub(crate) fn flush(&mut self) -> Result<()> {
        either!(self, end => end.flush())
    }

    pub(crate) fn last_tag(&self) -> Option<u64> {
        either!(self, end => end.last_tag())
    }

    /// A second mapping of the data, for views of slots.
    pub(crate) fn window(&mut self) -> Result<Window> {
        self.raw_endpoint().window()
    }

    pub(crate) fn close(self) -> Result<()> {
        either!(self, end => end.close())
    }

    pub(crate) fn abandon(self) {
        either!(self, end => end.abandon());
    }
}

// Not inlined: a ring's messages are not to take longer because there are topics.

#[inline(never)]
fn reserve(publisher: &mut Publisher, len: usize, wait_limit: WaitLimit) -> Result<*mut u8> {
    publisher.raw().reserve(len, wait_limit)
}

#[inline(never)]
fn commit(publisher: &mut Publisher, len: usize, type_id: u32, tag: u64, flush: bool) -> Result<()> {
    publisher.raw().commit(len, type_id, tag, flush)
}

#[inline(never)]
fn release_until(subscriber: &mut Subscriber, position: u64) {
    subscriber.raw().release_until(position);
}

impl ReceiverEnd {
    /// Where the frame that was received last ends.
    #[inline(always)]
    pub(crate) fn position(&mut self) -> u64 {
        either!(self, end => end.raw().position())
    }

    /// Has the frames after a position received again; `None`: all that are not released.
    pub(crate) fn unread(&mut self, position: Option<u64>) {
        either!(self, end => end.raw().unread(position));
    }

    /// Gives the frames up to a position back.
    #[inline(always)]
    pub(crate) fn release_until(&mut self, position: u64) {
        match self {
            Self::Ring(end) => end.raw().release_until(position),
            Self::Topic(end) => release_until(end, position),
        }
    }

    /// Bytes that a message of `len` takes in the log.
    pub(crate) fn frame_size(&self, len: usize) -> u64 {
        match self {
            Self::Ring(end) => ramway::layout::frame_size(len as u64, end.align() as u32),
            Self::Topic(end) => ramway::layout::topic_frame_size(len as u64, end.align() as u32),
        }
    }

    /// Whether a frame is there.
    pub(crate) fn is_there(&mut self) -> Result<bool> {
        either!(self, end => end.raw().is_there(1))
    }

    /// Bytes that are received and not released.
    pub(crate) fn unreleased(&mut self) -> u64 {
        either!(self, end => end.raw().unreleased())
    }

    /// Whether the sender sleeps until there is room, which this side may be what keeps it from.
    pub(crate) fn sender_waits(&mut self) -> bool {
        either!(self, end => end.raw().sender_waits())
    }
}
