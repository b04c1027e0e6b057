//! iceoryx2 from many to one: a publisher with a node of its own for each producer, one subscriber that reads everything in
//! place. Publishers wait where its queue is full, and it lets others run where nothing has come, as there are more of them
//! than processors.

use super::fan::{Port, Reader, Writer, node};
use super::{BUFFERED_MAX, PREFIX, Rest, Result, is_stale, remove};
use iceoryx2::prelude::*;
use iceoryx2::service::port_factory::publish_subscribe::PortFactory;
use ramway_bench::fan::{Gather, Ticket, Writes};
use ramway_bench::{About, Burst, Kind, Setup, Test};
use std::any::Any;

/// Several producers.
#[derive(Clone, Copy)]
pub struct Producers;

/// A publisher, in whatever thread.
pub struct Producer(Writer);

// SAFETY: what the ports of a node share, and count without atomics, is this node's alone, and moves with it: nothing of it
// is left on the thread that made it.
unsafe impl Send for Producer {}

/// More than any group has.
const PRODUCERS_MAX: usize = 16;
const NAME: &str = "gather";

fn prefix() -> String {
    format!("{PREFIX}{}_", std::process::id())
}

fn service(node: &Node<ipc::Service>, setup: &Setup) -> Result<PortFactory<ipc::Service, [u8], ()>> {
    let service = node.service_builder(&NAME.try_into()?).publish_subscribe::<[u8]>();
    let service = service.max_publishers(PRODUCERS_MAX).max_subscribers(1).max_nodes(PRODUCERS_MAX + 1).history_size(0);
    let service = service.subscriber_max_buffer_size(buffered(setup)).subscriber_max_borrowed_samples(1);
    Ok(service.payload_alignment(Alignment::ALIGN_64).enable_safe_overflow(false).open_or_create()?)
}

fn buffered(setup: &Setup) -> usize {
    (setup.capacity as usize / setup.largest.max(1)).clamp(2, BUFFERED_MAX)
}

impl Gather for Producers {
    type Writer = Producer;
    type Reader = Reader;

    fn about(&self) -> About {
        let what = "iceoryx2, a publisher for each producer, one subscriber that reads everything in place";
        About::new("iceoryx2-producers", Kind::Peer, false, what).version(env!("PEER_VERSION"))
    }

    fn can(&self, burst: &Burst) -> bool {
        burst.test == Test::Producers
    }

    fn prepare(&self, _setup: &Setup) -> Result<(Ticket, Box<dyn Any>)> {
        remove(is_stale);
        Ok((Ticket { text: prefix(), ..Ticket::default() }, Box::new(Rest(prefix()))))
    }

    fn writers(&self, setup: &Setup, burst: &Burst) -> Result<Vec<Producer>> {
        let open = |_| {
            let node = node(setup, &prefix())?;
            let publisher = service(&node, setup)?
                .publisher_builder()
                .initial_max_slice_len(setup.largest)
                .max_loaned_samples(1)
                .backpressure_strategy(BackpressureStrategy::RetryUntilDelivered)
                .create()?;
            Ok(Producer(Writer::messages(publisher, node)))
        };
        (0..burst.threads).map(open).collect()
    }

    fn reader(&self, setup: &Setup, ticket: &str, _burst: &Burst) -> Result<Reader> {
        let node = node(setup, ticket)?;
        let subscriber = service(&node, setup)?.subscriber_builder().buffer_size(buffered(setup)).create()?;
        Ok(Reader { port: Port::Messages(subscriber), _node: node })
    }
}

impl Writes for Producer {
    #[inline(always)]
    fn write(&mut self, size: usize, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        self.0.write(size, fill)
    }
}
