//! A handle of C is an end of a ring or of a topic: what both can do is one function.

use crate::inline::{RAMWAY_INLINE_LAYOUT, RAMWAY_INLINE_TOPIC_LAYOUT};
use ramway_core::{Publisher, Receiver, Sender, Subscriber};
use std::ffi::c_void;

/// An end of a ring, or of a topic.
#[derive(Debug)]
pub(crate) enum Either<R, T> {
    Ring(R),
    Topic(T),
}

/// What a `ramway_sender` stands on.
pub(crate) type Sending = Either<Sender, Publisher>;

/// What a `ramway_receiver` stands on.
pub(crate) type Receiving = Either<Receiver, Subscriber>;

/// Does the same with either, by its own type.
macro_rules! each {
    ($either:expr, $end:ident => $do:expr) => {
        match $either {
            $crate::either::Either::Ring($end) => $do,
            $crate::either::Either::Topic($end) => $do,
        }
    };
}
pub(crate) use each;

impl<R, T> Either<R, T> {
    /// Which private state the inline functions find.
    pub(crate) fn layout(&self) -> u32 {
        match self {
            Self::Ring(_) => RAMWAY_INLINE_LAYOUT,
            Self::Topic(_) => RAMWAY_INLINE_TOPIC_LAYOUT,
        }
    }
}

impl Sending {
    /// The private state, whose address stays the same.
    pub(crate) fn hot(&mut self) -> *mut c_void {
        each!(self, sender => sender.raw().hot().cast())
    }
}

impl Receiving {
    /// The private state, whose address stays the same.
    pub(crate) fn hot(&mut self) -> *mut c_void {
        each!(self, receiver => receiver.raw().hot().cast())
    }
}
