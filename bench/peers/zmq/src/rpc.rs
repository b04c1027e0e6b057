//! ZeroMQ's REQ and REP: a request, then its reply, one at a time.

use super::{Result, address};
use ramway_bench::{About, Burst, Channel, End, Kind, Mechanism, Mode, Prepared, Setup, Test};
use zmq::{Context, Message, Socket};

pub struct Rpc;

struct Side {
    socket: Socket,
    input: Message,
    // After the socket: ending it waits for it.
    _context: Context,
}

fn open(kind: zmq::SocketType) -> Result<Side> {
    let context = Context::new();
    let socket = context.socket(kind)?;
    socket.set_linger(0)?;
    Ok(Side { socket, input: Message::new(), _context: context })
}

impl Mechanism for Rpc {
    fn about(&self) -> About {
        let (major, minor, patch) = zmq::version();
        let what = format!("ZeroMQ (libzmq {major}.{minor}.{patch}): REQ and REP over ipc://, an I/O thread each");
        About::new("zmq-req", Kind::Peer, true, &what).version(env!("PEER_VERSION"))
    }

    fn can(&self, burst: &Burst) -> bool {
        burst.test == Test::Call && burst.batch <= 1 && burst.mode == Mode::Block
    }

    fn prepare(&self, setup: &Setup) -> Result<Prepared> {
        let side = open(zmq::REQ)?;
        side.socket.connect(&address(setup, "rpc")?)?;
        Ok(Prepared::new(String::new(), move || Ok(Box::new(side) as Box<dyn End>)))
    }

    fn join(&self, setup: &Setup, _ticket: &str) -> Result<Box<dyn End>> {
        let side = open(zmq::REP)?;
        side.socket.bind(&address(setup, "rpc")?)?;
        Ok(Box::new(side))
    }
}

impl Channel for Side {
    fn configure(&mut self, _mode: Mode) -> Result<()> {
        Ok(())
    }

    #[inline(always)]
    fn send(&mut self, size: usize, _flush: bool, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        let mut message = Message::with_size(size);
        fill(&mut message);
        Ok(self.socket.send(message, 0)?)
    }

    #[inline(always)]
    fn receive(&mut self, size: usize, _max: u32, mut read: impl FnMut(&[u8])) -> Result<u32> {
        loop {
            match self.socket.recv(&mut self.input, 0) {
                Ok(()) => break,
                Err(zmq::Error::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if self.input.len() != size {
            return Err(format!("a message of {} bytes instead of {size}", self.input.len()).into());
        }
        read(&self.input);
        Ok(1)
    }
}
