//! The files of `topic/` that are modelled: all but how a topic is opened, for which `memory.rs` stands in.

#[path = "../../../src/topic/calls.rs"]
mod calls;
#[path = "../../../src/topic/copies.rs"]
mod copies;
#[path = "../../../src/topic/frame.rs"]
mod frame;
#[path = "../../../src/topic/join.rs"]
mod join;
#[path = "../../../src/topic/log.rs"]
mod log;
mod memory;
#[path = "../../../src/topic/message.rs"]
mod message;
#[path = "../../../src/topic/newest.rs"]
mod newest;
#[path = "../../../src/topic/patrol.rs"]
mod patrol;
#[path = "../../../src/topic/place.rs"]
pub mod place;
#[path = "../../../src/topic/publisher.rs"]
mod publisher;
#[path = "../../../src/topic/subscriber.rs"]
pub mod subscriber;
#[path = "../../../src/topic/word.rs"]
mod word;

pub use calls::{Lag, SubscriberInfo};
pub use log::{Publisher, Subscriber, Topic};
pub use memory::{Begin, Memory, Options};
pub use message::{TopicMessage, TopicMeta};
pub use place::{Place, Policy};
