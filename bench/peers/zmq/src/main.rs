//! ZeroMQ: a PUSH and a PULL socket each way over `ipc://`, as its own throughput test has them. Messages are allocated
//! by the library and filled and read where they lie; its I/O thread writes and reads the socket, several at a time. It
//! runs on the processor of its process. A receiver sleeps (`recv`); one that polled would keep that thread from its
//! processor.

mod fan;
mod poll;
mod rpc;

use ramway_bench::fan::{ManyToOne, OneToMany};
use ramway_bench::{About, Burst, Channel, End, Failure, Kind, Mechanism, Mode, Prepared, Setup};
use zmq::{Context, Message, Socket};

type Result<T> = std::result::Result<T, Failure>;

#[global_allocator]
static ALLOCATOR: ramway_bench::CountingAllocator = ramway_bench::CountingAllocator;

struct Zmq;

struct Pair {
    tx: Socket,
    rx: Socket,
    input: Message,
    // After the sockets: ending it waits for them.
    _context: Context,
}

fn address(setup: &Setup, name: &str) -> Result<String> {
    let path = setup.directory.join(name);
    Ok(format!("ipc://{}", path.to_str().ok_or("a path that is not UTF-8")?))
}

/// Messages of a queue that holds what the others' rings hold.
fn queue(setup: &Setup) -> i32 {
    (setup.capacity as usize / setup.largest.max(1)).clamp(2, 1 << 20) as i32
}

/// A socket with such a queue.
fn socket(context: &Context, kind: zmq::SocketType, setup: &Setup) -> Result<Socket> {
    let socket = context.socket(kind)?;
    socket.set_sndhwm(queue(setup))?;
    socket.set_rcvhwm(queue(setup))?;
    // What nobody reads any more may be lost.
    socket.set_linger(0)?;
    Ok(socket)
}

impl Mechanism for Zmq {
    fn about(&self) -> About {
        let (major, minor, patch) = zmq::version();
        let what = format!("ZeroMQ (libzmq {major}.{minor}.{patch}): PUSH and PULL over ipc://, an I/O thread each");
        About::new("zmq", Kind::Peer, true, &what).version(env!("PEER_VERSION"))
    }

    fn can(&self, burst: &Burst) -> bool {
        burst.size > 0 && !matches!(burst.mode, Mode::Spin | Mode::Hybrid)
    }

    fn prepare(&self, setup: &Setup) -> Result<Prepared> {
        let context = Context::new();
        let (tx, rx) = (socket(&context, zmq::PUSH, setup)?, socket(&context, zmq::PULL, setup)?);
        tx.bind(&address(setup, "there")?)?;
        rx.bind(&address(setup, "back")?)?;
        let finish = move || Ok(Box::new(Pair { tx, rx, input: Message::new(), _context: context }) as Box<dyn End>);
        Ok(Prepared::new(String::new(), finish))
    }

    fn join(&self, setup: &Setup, _ticket: &str) -> Result<Box<dyn End>> {
        let context = Context::new();
        let (tx, rx) = (socket(&context, zmq::PUSH, setup)?, socket(&context, zmq::PULL, setup)?);
        rx.connect(&address(setup, "there")?)?;
        tx.connect(&address(setup, "back")?)?;
        Ok(Box::new(Pair { tx, rx, input: Message::new(), _context: context }))
    }
}

impl Channel for Pair {
    fn configure(&mut self, _mode: Mode) -> Result<()> {
        Ok(())
    }

    #[inline(always)]
    fn send(&mut self, size: usize, _flush: bool, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        // The way in without a copy that it documents; it zeroes first.
        let mut message = Message::with_size(size);
        fill(&mut message);
        // Waits where the queue is full.
        Ok(self.tx.send(message, 0)?)
    }

    #[inline(always)]
    fn receive(&mut self, size: usize, max: u32, mut read: impl FnMut(&[u8])) -> Result<u32> {
        let mut count = 0;
        while count < max {
            let flags = if count > 0 { zmq::DONTWAIT } else { 0 };
            match self.rx.recv(&mut self.input, flags) {
                Ok(()) => {}
                Err(zmq::Error::EAGAIN) if count > 0 => break,
                Err(zmq::Error::EINTR) => continue,
                Err(error) => return Err(error.into()),
            }
            if self.input.len() != size {
                return Err(format!("a message of {} bytes instead of {size}", self.input.len()).into());
            }
            read(&self.input);
            count += 1;
        }
        Ok(count)
    }
}

fn main() {
    let fans = [fan::PubSub::Default, fan::PubSub::NoDrop, fan::PubSub::Conflate].map(OneToMany);
    let polled = (poll::Polled::<16>, poll::Polled::<128>);
    let producers = ManyToOne(fan::Producers);
    match ramway_bench::child_main(&[&Zmq, &fans[0], &fans[1], &fans[2], &polled.0, &polled.1, &producers, &rpc::Rpc]) {
        Some(code) => std::process::exit(code),
        None => eprintln!("a worker of `ramway bench`, which starts it"),
    }
}
