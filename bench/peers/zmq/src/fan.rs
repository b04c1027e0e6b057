//! ZeroMQ from one to many, the newest value, and from many to one, over `ipc://`. PUB and SUB as they are by default: 1000
//! messages on each side of the socket, and what comes beyond is dropped, by the publisher, without a word. Beside it the same
//! with queues as long as the others' and `ZMQ_XPUB_NODROP`, by which a publisher waits for the slowest. The newest value is
//! `ZMQ_CONFLATE` at both ends, which keeps one message. Producers are PUSH sockets with a context each, as if each were a
//! process; PULL receives.

use super::{Result, address, queue};
use ramway_bench::fan::{Fan, Gather, Reads, Ticket, Writes};
use ramway_bench::{About, Burst, Kind, Setup, Test};
use zmq::{Context, Message, Socket};

/// By what a publisher does with what a subscriber has no room for.
#[derive(Clone, Copy)]
pub enum PubSub {
    /// Drops it.
    Default,
    /// Waits.
    NoDrop,
    /// Keeps the newest message.
    Conflate,
}

/// Several producers.
#[derive(Clone, Copy)]
pub struct Producers;

/// A socket that sends.
pub struct Writer {
    socket: Socket,
    // After the socket: ending it waits for it.
    _context: Context,
}

/// A socket that receives.
pub struct Reader {
    socket: Socket,
    /// The last message.
    input: Message,
    /// What the next one is received into: a `recv` that finds nothing empties it.
    next: Message,
    _context: Context,
}

const NAME: &str = "fan";

impl Writer {
    fn new(context: Context, socket: Socket) -> Result<Self> {
        // What nobody reads any more may be lost.
        socket.set_linger(0)?;
        Ok(Self { socket, _context: context })
    }
}

impl Reader {
    fn new(context: Context, socket: Socket) -> Result<Self> {
        socket.set_linger(0)?;
        Ok(Self { socket, input: Message::new(), next: Message::new(), _context: context })
    }

    /// Whether something came.
    fn receive(&mut self, size: usize, flags: i32) -> Result<bool> {
        loop {
            match self.socket.recv(&mut self.next, flags) {
                Ok(()) if self.next.len() == size => {
                    std::mem::swap(&mut self.input, &mut self.next);
                    return Ok(true);
                }
                Ok(()) => return Err(format!("a message of {} bytes instead of {size}", self.next.len()).into()),
                Err(zmq::Error::EAGAIN) => return Ok(false),
                Err(zmq::Error::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// A publisher waits where a subscriber's queue is full. The binding has no call for this option.
fn set_no_drop(socket: &mut Socket) -> Result<()> {
    let on: i32 = 1;
    // SAFETY: the socket is open, and the option is an int, which is read before the call returns.
    let failed = unsafe {
        let (option, value) = (zmq_sys::ZMQ_XPUB_NODROP as i32, (&raw const on).cast());
        zmq_sys::zmq_setsockopt(socket.as_mut_ptr(), option, value, size_of::<i32>())
    };
    if failed == 0 { Ok(()) } else { Err("ZMQ_XPUB_NODROP is refused".into()) }
}

impl Fan for PubSub {
    type Writer = Writer;
    type Reader = Reader;

    fn about(&self) -> About {
        let (name, what) = match self {
            Self::Default => {
                ("zmq-pubsub", "PUB and SUB over ipc:// with their defaults: 1000 messages, then they are dropped")
            }
            Self::NoDrop => {
                ("zmq-pubsub-nodrop", "PUB and SUB over ipc:// with ZMQ_XPUB_NODROP, queues of the others' length")
            }
            Self::Conflate => ("zmq-conflate", "PUB and SUB over ipc:// with ZMQ_CONFLATE: the newest message"),
        };
        About::new(name, Kind::Peer, true, &format!("ZeroMQ: {what}")).version(env!("PEER_VERSION"))
    }

    fn can(&self, burst: &Burst) -> bool {
        match self {
            Self::Default | Self::NoDrop => burst.test == Test::Readers,
            Self::Conflate => burst.test == Test::Latest,
        }
    }

    fn writer(&self, setup: &Setup) -> Result<(Writer, Ticket)> {
        let context = Context::new();
        let mut socket = context.socket(zmq::PUB)?;
        match self {
            Self::Default => {}
            Self::NoDrop => {
                socket.set_sndhwm(queue(setup))?;
                set_no_drop(&mut socket)?;
            }
            Self::Conflate => socket.set_conflate(true)?,
        }
        socket.bind(&address(setup, NAME)?)?;
        Ok((Writer::new(context, socket)?, Ticket::default()))
    }

    /// Each with a context of its own, as in a process of its own.
    fn readers(&self, setup: &Setup, _ticket: &str, burst: &Burst) -> Result<Vec<Reader>> {
        let count = if burst.test == Test::Readers { burst.threads } else { 1 };
        let open = |_| {
            let context = Context::new();
            let socket = context.socket(zmq::SUB)?;
            match self {
                Self::Default => {}
                Self::NoDrop => socket.set_rcvhwm(queue(setup))?,
                Self::Conflate => socket.set_conflate(true)?,
            }
            socket.set_subscribe(b"")?;
            socket.connect(&address(setup, NAME)?)?;
            Reader::new(context, socket)
        };
        (0..count).map(open).collect()
    }
}

impl Gather for Producers {
    type Writer = Writer;
    type Reader = Reader;

    fn about(&self) -> About {
        let what = "ZeroMQ: a PUSH socket for each producer and one PULL over ipc://, with their defaults";
        About::new("zmq-producers", Kind::Peer, true, what).version(env!("PEER_VERSION"))
    }

    fn can(&self, burst: &Burst) -> bool {
        burst.test == Test::Producers
    }

    fn writers(&self, setup: &Setup, burst: &Burst) -> Result<Vec<Writer>> {
        let open = |_| {
            let context = Context::new();
            let socket = context.socket(zmq::PUSH)?;
            // It tries again until the other process has bound it.
            socket.connect(&address(setup, NAME)?)?;
            Writer::new(context, socket)
        };
        (0..burst.threads).map(open).collect()
    }

    fn reader(&self, setup: &Setup, _ticket: &str, _burst: &Burst) -> Result<Reader> {
        let context = Context::new();
        let socket = context.socket(zmq::PULL)?;
        socket.bind(&address(setup, NAME)?)?;
        Reader::new(context, socket)
    }
}

impl Writes for Writer {
    #[inline(always)]
    fn write(&mut self, size: usize, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        let mut message = Message::with_size(size);
        fill(&mut message);
        Ok(self.socket.send(message, 0)?)
    }
}

impl Reads for Reader {
    const DROPS: bool = true;

    #[inline(always)]
    fn next(&mut self, size: usize, mut read: impl FnMut(&[u8])) -> Result<u64> {
        self.receive(size, 0)?;
        read(&self.input);
        Ok(0)
    }

    /// What came since, else what came last.
    #[inline(always)]
    fn newest(&mut self, size: usize, mut read: impl FnMut(&[u8])) -> Result<()> {
        let flags = if self.input.is_empty() { 0 } else { zmq::DONTWAIT };
        self.receive(size, flags)?;
        read(&self.input);
        Ok(())
    }
}
