//! What a topic's message says besides what a ring's does.

use super::Topic;
use crate::ring::{Message, MessageView};

/// What a copied message of a topic was sent with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicMeta {
    /// The publisher's type id.
    pub type_id: u32,
    /// The publisher's tag.
    pub tag: u64,
    /// Bytes of payload.
    pub len: usize,
    /// The message's number: the topic's first one has 1.
    pub seq: u64,
    /// When it was sent, in nanoseconds since 1970 by the publisher's wall clock; 0 if the publisher gives no times.
    pub time: u64,
    /// How many messages were lost right before this one.
    pub lost: u64,
}

/// A copy of a topic's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicMessage {
    /// The publisher's type id.
    pub type_id: u32,
    /// The publisher's tag.
    pub tag: u64,
    /// As [`TopicMeta::seq`].
    pub seq: u64,
    /// As [`TopicMeta::time`].
    pub time: u64,
    /// As [`TopicMeta::lost`].
    pub lost: u64,
    /// The payload.
    pub data: Vec<u8>,
}

macro_rules! stamped {
    ($type:ident) => {
        /// Of a topic.
        impl $type<'_, Topic> {
            /// The message's number: the topic's first one has 1, and each later one at least 1 more than the one before.
            #[inline(always)]
            pub fn seq(&self) -> u64 {
                self.stamp().seq
            }

            /// When it was sent, in nanoseconds since 1970 by the publisher's wall clock; 0 if the publisher gives no times.
            #[inline(always)]
            pub fn time(&self) -> u64 {
                self.stamp().time
            }

            /// How many messages were lost right before this one.
            #[inline(always)]
            pub fn lost(&self) -> u64 {
                self.stamp().lost
            }
        }
    };
}

stamped!(Message);
stamped!(MessageView);
