//! Several PUSH and PULL sockets each way over `ipc://`, of which one is busy: each message is a `zmq_poll` over all that
//! receive, and a `recv` of the one that is ready. It sleeps; the items are made once and used again, as its examples do.

use super::{Result, address, socket};
use ramway_bench::{About, Burst, Channel, End, Kind, Mechanism, Mode, Prepared, Setup, Test};
use zmq::{Context, Message, Socket};

/// Over `N` sockets each way.
pub struct Polled<const N: usize>;

struct Many {
    senders: Vec<Socket>,
    items: Vec<zmq_sys::zmq_pollitem_t>,
    receivers: Vec<Socket>,
    input: Message,
    // After the sockets: ending it waits for them.
    _context: Context,
}

/// The most of them that a process may have: two for each of `N`.
const SOCKETS_MAX: i32 = 1023;

impl Many {
    fn open(setup: &Setup, count: usize, leads: bool) -> Result<Self> {
        let context = Context::new();
        assert!(2 * count < SOCKETS_MAX as usize, "more sockets than a context has by default");
        let (mut senders, mut receivers) = (Vec::new(), Vec::new());
        for at in 0..count {
            let (tx, rx) = (socket(&context, zmq::PUSH, setup)?, socket(&context, zmq::PULL, setup)?);
            let [there, back] = ["there", "back"].map(|way| address(setup, &format!("{way}-{at}")));
            if leads {
                tx.bind(&there?)?;
                rx.bind(&back?)?;
            } else {
                rx.connect(&there?)?;
                tx.connect(&back?)?;
            }
            senders.push(tx);
            receivers.push(rx);
        }
        let item = |receiver: &mut Socket| zmq_sys::zmq_pollitem_t {
            socket: receiver.as_mut_ptr(),
            fd: 0,
            events: zmq::POLLIN.bits(),
            revents: 0,
        };
        let items = receivers.iter_mut().map(item).collect();
        Ok(Self { senders, items, receivers, input: Message::new(), _context: context })
    }
}

impl<const N: usize> Mechanism for Polled<N> {
    fn about(&self) -> About {
        let what = format!("ZeroMQ: `zmq_poll` over {N} PULL sockets on ipc://, of which one is busy; then `recv`");
        About::new(&format!("zmq-poll-{N}"), Kind::Peer, true, &what).version(env!("PEER_VERSION"))
    }

    fn can(&self, burst: &Burst) -> bool {
        let test = matches!(burst.test, Test::Rtt | Test::OneWay);
        test && burst.size > 0 && matches!(burst.mode, Mode::Block | Mode::Each)
    }

    fn prepare(&self, setup: &Setup) -> Result<Prepared> {
        let many = Many::open(setup, N, true)?;
        Ok(Prepared::new(String::new(), move || Ok(Box::new(many) as Box<dyn End>)))
    }

    fn join(&self, setup: &Setup, _ticket: &str) -> Result<Box<dyn End>> {
        Ok(Box::new(Many::open(setup, N, false)?))
    }
}

impl Channel for Many {
    fn configure(&mut self, _mode: Mode) -> Result<()> {
        Ok(())
    }

    #[inline(always)]
    fn send(&mut self, size: usize, _flush: bool, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        let mut message = Message::with_size(size);
        fill(&mut message);
        let busy = self.senders.len() / 2;
        Ok(self.senders[busy].send(message, 0)?)
    }

    #[inline(always)]
    fn receive(&mut self, size: usize, _max: u32, mut read: impl FnMut(&[u8])) -> Result<u32> {
        loop {
            // SAFETY: the items are of sockets that this owns, and of which no other thread knows.
            let ready = unsafe { zmq_sys::zmq_poll(self.items.as_mut_ptr(), self.items.len() as i32, -1) };
            if ready > 0 {
                break;
            }
            // SAFETY: gives a number of this thread.
            match zmq::Error::from_raw(unsafe { zmq_sys::zmq_errno() }) {
                zmq::Error::EINTR => {}
                error => return Err(error.into()),
            }
        }
        let at = self.items.iter().position(|item| item.revents != 0).ok_or("none is ready")?;
        self.receivers[at].recv(&mut self.input, zmq::DONTWAIT)?;
        if self.input.len() != size {
            return Err(format!("a message of {} bytes instead of {size}", self.input.len()).into());
        }
        read(&self.input);
        Ok(1)
    }
}
