//! ipc-channel: its byte channels, which its documentation names for bytes: a seqpacket socket pair each way, messages
//! over the socket's buffer in fragments over a socket of their own. `try_recv` where the sides poll, `recv` where they
//! sleep.

use ipc_channel::TryRecvError;
use ipc_channel::ipc::{IpcBytesReceiver, IpcBytesSender, IpcOneShotServer, IpcSender, bytes_channel};
use ramway_bench::{About, Burst, Channel, End, Failure, Kind, Mechanism, Mode, Prepared, Setup};

type Result<T> = std::result::Result<T, Failure>;

#[global_allocator]
static ALLOCATOR: ramway_bench::CountingAllocator = ramway_bench::CountingAllocator;

struct IpcChannel;

struct Pair {
    tx: IpcBytesSender,
    rx: IpcBytesReceiver,
    polls: bool,
    out: Vec<u8>,
}

/// What the following process hands to the leading one.
type Ends = (IpcBytesSender, IpcBytesReceiver);

impl Mechanism for IpcChannel {
    fn about(&self) -> About {
        let what = "ipc-channel's byte channels: a seqpacket socket pair each way";
        About::new("ipc-channel", Kind::Peer, true, what).version(env!("PEER_VERSION"))
    }

    fn can(&self, burst: &Burst) -> bool {
        burst.size > 0 && burst.mode != Mode::Hybrid
    }

    fn prepare(&self, setup: &Setup) -> Result<Prepared> {
        let (server, name) = IpcOneShotServer::<Ends>::new()?;
        let largest = setup.largest;
        let finish = move || {
            let (_, (tx, rx)) = server.accept()?;
            Ok(Box::new(Pair { tx, rx, polls: false, out: vec![0; largest] }) as Box<dyn End>)
        };
        Ok(Prepared::new(name, finish))
    }

    fn join(&self, setup: &Setup, ticket: &str) -> Result<Box<dyn End>> {
        let (there_tx, there_rx) = bytes_channel()?;
        let (back_tx, back_rx) = bytes_channel()?;
        IpcSender::<Ends>::connect(ticket.into())?.send((there_tx, back_rx))?;
        Ok(Box::new(Pair { tx: back_tx, rx: there_rx, polls: false, out: vec![0; setup.largest] }))
    }
}

impl Channel for Pair {
    fn configure(&mut self, mode: Mode) -> Result<()> {
        self.polls = matches!(mode, Mode::Spin | Mode::Each | Mode::Batch);
        Ok(())
    }

    #[inline(always)]
    fn send(&mut self, size: usize, _flush: bool, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        let message = &mut self.out[..size];
        fill(message);
        Ok(self.tx.send(message)?)
    }

    #[inline(always)]
    fn receive(&mut self, size: usize, max: u32, mut read: impl FnMut(&[u8])) -> Result<u32> {
        let mut count = 0;
        while count < max {
            let message = match self.polls || count > 0 {
                true => match self.rx.try_recv() {
                    Ok(message) => message,
                    Err(TryRecvError::Empty) if count > 0 => break,
                    Err(TryRecvError::Empty) => {
                        std::hint::spin_loop();
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                },
                false => self.rx.recv()?,
            };
            if message.len() != size {
                return Err(format!("a message of {} bytes instead of {size}", message.len()).into());
            }
            read(&message);
            count += 1;
        }
        Ok(count)
    }
}

fn main() {
    match ramway_bench::child_main(&[&IpcChannel]) {
        Some(code) => std::process::exit(code),
        None => eprintln!("a worker of `ramway bench`, which starts it"),
    }
}
