//! What a topic is to the code that is written over any log ([`Shape`]): the types of its frames, messages and sides.

use super::publisher::{Commit, PublisherState};
use super::subscriber::{Stamp, SubscriberState};
use super::{Place, TopicMessage, TopicMeta};
use crate::layout::{TOPIC_FRAME_HEADER, TopicBlock};
use crate::ring::consumer::Frame;
use crate::ring::log::Shape;

/// A named topic: where [`Publisher`] and [`Subscriber`] come from.
///
/// Names are as for a [`Ring`](crate::Ring). Either side may create the topic. The name goes when the last handle does,
/// unless a durable subscriber has not read everything, or the topic is persistent.
///
/// ```
/// # fn main() -> ramway::Result<()> {
/// # let name = format!("/dev/shm/ramway-doc-topic-{}", std::process::id());
/// let mut publisher = ramway::Topic::open_or_create(&name).capacity(1 << 20).publisher()?;
///
/// // In other processes, say:
/// let mut controller = ramway::Topic::open(&name).subscriber()?; // sees every message
/// let mut viewer = ramway::Topic::open(&name).lossy().subscriber()?; // never holds the publisher up
/// let mut display = ramway::Topic::open(&name).latest().subscriber()?; // reads the newest one
///
/// publisher.send(1, b"first")?;
/// publisher.send(1, b"second")?;
/// let message = controller.recv()?;
/// assert_eq!((&*message, message.seq(), message.lost()), (&b"first"[..], 1, 0));
/// drop(message);
/// assert_eq!(&*viewer.recv()?, b"first");
/// assert_eq!(&*display.latest()?, b"second");
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Topic;

/// The one publisher of a topic: a [`Sender`](crate::Sender) whose log many read. `send` waits for the slowest reliable
/// subscriber when the log is full, and for nobody where there is none. A subscriber never ends it: no call gives `Closed` or
/// `PeerDead` because of one.
///
/// A publisher's `wait_for_peer` waits for a reliable subscriber, and its `peer_epoch` counts the subscribers that came,
/// went, or began anew.
pub type Publisher = crate::Sender<Topic>;

/// A subscriber of a topic: a [`Receiver`](crate::Receiver) that is one of many. What it is given depends on its
/// [`Policy`](crate::Policy): views of the log under [`Policy::Reliable`](crate::Policy::Reliable), where the publisher may
/// not eject it, else copies.
pub type Subscriber = crate::Receiver<Topic>;

impl Shape for Topic {
    const NAME: &str = "topic";
    const HEADER: u64 = TOPIC_FRAME_HEADER;
    type Block = TopicBlock;
    type Place = Place;
    type Commit = Commit;
    type Writer = PublisherState;
    type Reader = SubscriberState;
    type Stamp = Stamp;
    type Meta = TopicMeta;
    type Owned = TopicMessage;

    fn meta(frame: &Frame<Self>) -> TopicMeta {
        let Stamp { seq, time, lost } = frame.stamp;
        TopicMeta { type_id: frame.type_id, tag: frame.tag, len: frame.len, seq, time, lost }
    }

    fn owned(meta: TopicMeta, data: Vec<u8>) -> TopicMessage {
        let TopicMeta { type_id, tag, seq, time, lost, .. } = meta;
        TopicMessage { type_id, tag, seq, time, lost, data }
    }
}
