//! iceoryx2 with several subscribers, and its newest value. Subscribers that read nothing are attached with the library's
//! default for those: the oldest sample is dropped where a queue is full. Those that read everything have a publisher that
//! waits, and let others run where nothing has come, as there are more of them than processors. The newest value is an
//! entry of a blackboard, written and read by a copy.

use super::{BUFFERED_MAX, PREFIX, Rest, Result, is_stale, remove};
use core::mem::MaybeUninit;
use iceoryx2::port::reader::EntryHandle;
use iceoryx2::port::writer::EntryHandleMut;
use iceoryx2::port::{publisher::Publisher, subscriber::Subscriber};
use iceoryx2::prelude::*;
use iceoryx2::service::port_factory::publish_subscribe::PortFactory;
use ramway_bench::fan::{Fan, Reads, Ticket, Writes};
use ramway_bench::{About, Burst, Kind, Setup, Test};

/// By what its readers are for.
#[derive(Clone, Copy)]
pub enum Topic {
    /// So many subscribers that read nothing.
    Unread(&'static str, usize),
    /// Subscribers that read everything.
    Readers,
    /// A blackboard with one entry.
    Blackboard,
}

/// More readers than any group has, and their nodes.
const READERS_MAX: usize = 16;
const NAME: &str = "fan";
/// What a subscriber's queue holds if nobody says.
const UNREAD_BUFFER: usize = 2;

enum Out {
    Messages(Publisher<ipc::Service, [u8], ()>),
    Line(EntryHandleMut<ipc::Service, u64, [u64; 8]>),
    Page(EntryHandleMut<ipc::Service, u64, [u64; 512]>),
}

/// The port goes before the node that it belongs to.
pub struct Writer {
    out: Out,
    _node: Node<ipc::Service>,
    _rest: Option<Rest>,
}

impl Writer {
    /// Of a publisher of messages and its node.
    pub(super) fn messages(publisher: Publisher<ipc::Service, [u8], ()>, node: Node<ipc::Service>) -> Self {
        Self { out: Out::Messages(publisher), _node: node, _rest: None }
    }
}

pub(super) enum Port {
    Messages(Subscriber<ipc::Service, [u8], ()>),
    Line(EntryHandle<ipc::Service, u64, [u64; 8]>),
    Page(EntryHandle<ipc::Service, u64, [u64; 512]>),
}

/// A port with a node of its own.
pub struct Reader {
    pub(super) port: Port,
    pub(super) _node: Node<ipc::Service>,
}

// SAFETY: what the ports of a node share, and count without atomics, is this node's alone, and moves with it: nothing of it
// is left on the thread that made it.
unsafe impl Send for Reader {}

/// With the row's directory and prefix.
pub(super) fn node(setup: &Setup, prefix: &str) -> Result<Node<ipc::Service>> {
    set_log_level(LogLevel::Error);
    let mut config = Config::default();
    config.global.prefix = FileName::new(prefix.as_bytes())?;
    let directory = setup.directory.to_str().ok_or("a path that is not UTF-8")?;
    config.global.set_root_path(&Path::new(directory.as_bytes())?);
    let builder = NodeBuilder::new().config(&config).signal_handling_mode(SignalHandlingMode::Disabled);
    Ok(builder.create::<ipc::Service>()?)
}

fn bytes_of<const N: usize>(words: &[u64; N]) -> &[u8] {
    // SAFETY: the same memory, of which every byte is one of a number.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of::<[u64; N]>()) }
}

fn filled<const N: usize>(fill: impl FnOnce(&mut [u8])) -> [u64; N] {
    let mut words = [0u64; N];
    // SAFETY: the same memory; any bytes are numbers.
    fill(unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), size_of::<[u64; N]>()) });
    words
}

impl Topic {
    fn service(self, node: &Node<ipc::Service>, setup: &Setup) -> Result<PortFactory<ipc::Service, [u8], ()>> {
        let service = node.service_builder(&NAME.try_into()?).publish_subscribe::<[u8]>();
        let service = service.max_publishers(1).max_subscribers(READERS_MAX).max_nodes(READERS_MAX + 1).history_size(0);
        let service = service.subscriber_max_buffer_size(self.buffered(setup)).subscriber_max_borrowed_samples(1);
        let overflow = matches!(self, Self::Unread(..));
        Ok(service.payload_alignment(Alignment::ALIGN_64).enable_safe_overflow(overflow).open_or_create()?)
    }

    fn buffered(self, setup: &Setup) -> usize {
        match self {
            Self::Unread(..) => UNREAD_BUFFER,
            _ => (setup.capacity as usize / setup.largest.max(1)).clamp(2, BUFFERED_MAX),
        }
    }
}

impl Fan for Topic {
    type Writer = Writer;
    type Reader = Reader;

    fn about(&self) -> About {
        let (name, copied, what) = match self {
            Self::Unread(name, count) => (
                *name,
                false,
                format!("iceoryx2 with {count} attached subscribers, which read nothing; the oldest goes"),
            ),
            Self::Readers => {
                ("iceoryx2-readers", false, "iceoryx2, subscribers that read everything in place".to_owned())
            }
            Self::Blackboard => ("iceoryx2-blackboard", true, "an entry of an iceoryx2 blackboard".to_owned()),
        };
        About::new(name, Kind::Peer, copied, &what).version(env!("PEER_VERSION"))
    }

    fn can(&self, burst: &Burst) -> bool {
        match self {
            Self::Unread(..) => burst.test == Test::Publish,
            Self::Readers => burst.test == Test::Readers,
            Self::Blackboard => burst.test == Test::Latest && matches!(burst.size, 64 | 4096),
        }
    }

    fn writer(&self, setup: &Setup) -> Result<(Writer, Ticket)> {
        remove(is_stale);
        let prefix = format!("{PREFIX}{}_", std::process::id());
        let rest = Rest(prefix.clone());
        let node = node(setup, &prefix)?;
        let ticket = Ticket { text: prefix, ..Ticket::default() };
        let blackboard = || -> Result<_> {
            let board = node.service_builder(&NAME.try_into()?).blackboard_creator::<u64>();
            Ok(board.max_readers(READERS_MAX).max_nodes(READERS_MAX + 1))
        };
        let out = match (self, setup.largest) {
            (Self::Blackboard, 64) => {
                let board = blackboard()?.add::<[u64; 8]>(0, [0; 8]).create()?;
                Out::Line(board.writer_builder().create()?.entry(&0)?)
            }
            (Self::Blackboard, _) => {
                let board = blackboard()?.add::<[u64; 512]>(0, [0; 512]).create()?;
                Out::Page(board.writer_builder().create()?.entry(&0)?)
            }
            _ => {
                let publisher = self
                    .service(&node, setup)?
                    .publisher_builder()
                    .initial_max_slice_len(setup.largest)
                    .max_loaned_samples(1)
                    .backpressure_strategy(BackpressureStrategy::RetryUntilDelivered)
                    .create()?;
                Out::Messages(publisher)
            }
        };
        Ok((Writer { out, _node: node, _rest: Some(rest) }, ticket))
    }

    fn readers(&self, setup: &Setup, ticket: &str, burst: &Burst) -> Result<Vec<Reader>> {
        let count = match self {
            Self::Unread(_, count) => *count,
            Self::Readers => burst.threads as usize,
            Self::Blackboard => 1,
        };
        let open = |_| -> Result<Reader> {
            let node = node(setup, ticket)?;
            let board = || -> Result<_> {
                Ok(node
                    .service_builder(&NAME.try_into()?)
                    .blackboard_opener::<u64>()
                    .open()?
                    .reader_builder()
                    .create()?)
            };
            let port = match (self, setup.largest) {
                (Self::Blackboard, 64) => Port::Line(board()?.entry(&0)?),
                (Self::Blackboard, _) => Port::Page(board()?.entry(&0)?),
                _ => {
                    let service = self.service(&node, setup)?;
                    Port::Messages(service.subscriber_builder().buffer_size(self.buffered(setup)).create()?)
                }
            };
            Ok(Reader { port, _node: node })
        };
        (0..count).map(open).collect()
    }
}

impl Writes for Writer {
    #[inline(always)]
    fn write(&mut self, size: usize, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        match &mut self.out {
            Out::Messages(publisher) => {
                let mut sample = publisher.loan_slice_uninit(size)?;
                let payload: &mut [MaybeUninit<u8>] = sample.payload_mut();
                // SAFETY: the same bytes; `fill` only writes, and writes all of them.
                fill(unsafe { std::slice::from_raw_parts_mut(payload.as_mut_ptr().cast(), size) });
                // SAFETY: filled just now.
                unsafe { sample.assume_init() }.send()?;
            }
            Out::Line(entry) => entry.update_with_copy(filled(fill)),
            Out::Page(entry) => entry.update_with_copy(filled(fill)),
        }
        Ok(())
    }
}

impl Reads for Reader {
    #[inline(always)]
    fn next(&mut self, size: usize, mut read: impl FnMut(&[u8])) -> Result<u64> {
        let Port::Messages(subscriber) = &self.port else { return Err("has no next message".into()) };
        loop {
            match subscriber.receive()? {
                Some(sample) if sample.payload().len() == size => {
                    read(sample.payload());
                    return Ok(0);
                }
                Some(sample) => {
                    return Err(format!("a message of {} bytes instead of {size}", sample.payload().len()).into());
                }
                None => std::thread::yield_now(),
            }
        }
    }

    #[inline(always)]
    fn newest(&mut self, _size: usize, mut read: impl FnMut(&[u8])) -> Result<()> {
        match &self.port {
            Port::Line(entry) => read(bytes_of(&*entry.get())),
            Port::Page(entry) => read(bytes_of(&*entry.get())),
            Port::Messages(_) => return Err("has no newest value".into()),
        }
        Ok(())
    }
}
