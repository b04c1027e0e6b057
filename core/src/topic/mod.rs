//! One publisher, many subscribers, each with its own policy.
//!
//! A topic is a log with one writer and any number of cursors. It stands on the same code as a ring: a [`Publisher`] is a
//! [`Sender`](crate::Sender) and a [`Subscriber`] a [`Receiver`](crate::Receiver), with what only a topic has besides. What
//! is in this folder are the topic's own rules:
//!
//! | file | rule |
//! | --- | --- |
//! | `log.rs` | what a topic's frames, messages and sides are |
//! | `publisher.rs` | how far a publisher may write, and how a message becomes visible |
//! | `patrol.rs` | what a blocked publisher does about the dead and about those that block it for too long |
//! | `join.rs` | how a subscriber comes without missing what the publisher overwrites |
//! | `subscriber.rs` | how it reads under each policy |
//! | `newest.rs` | how the newest message is read, whatever was received before |
//! | `survey.rs` | what those who only look at a topic call a policy |
//! | `word.rs` | how both sides sleep, come and go |
//!
//! The format is in `docs/ABI.md`, section 19. Positions, the claim and the slots are modelled in `core/models`.

mod builder;
mod calls;
mod copies;
mod frame;
mod join;
mod log;
mod message;
mod newest;
mod patrol;
pub mod place;
mod publisher;
pub mod raw;
pub mod subscriber;
mod survey;
#[cfg(test)]
mod tests;
pub mod word;

pub use builder::TopicBuilder;
pub use calls::{Lag, SubscriberInfo};
pub use log::{Publisher, Subscriber, Topic};
pub use message::{TopicMessage, TopicMeta};
pub use place::{Place, Policy};
