//! Rings and buses by the flags.

use std::time::Duration;

use ramway::{Bus, Listener, Receiver, Ring, RingBuilder, Sender};

use crate::Stop;
use crate::args::Args;

/// Both halves of a bus, or what the command needs of rings.
pub(crate) struct Ends {
    pub(crate) sender: Option<Sender>,
    pub(crate) receiver: Option<Receiver>,
}

/// How long to wait for a name, a role or the other side.
const PATIENCE: Duration = Duration::from_secs(10);

fn ring(name: &str, args: &Args) -> RingBuilder {
    let builder =
        if args.create { Ring::create(name).capacity(args.capacity).align(args.align) } else { Ring::open(name) };
    builder.timeout(PATIENCE).wait_policy(args.policy())
}

/// The ring or bus of the flags. On rings `to` names the one to send to and `from` the one to receive from.
pub(crate) fn open(args: &Args, to: Option<&str>, from: Option<&str>) -> Result<Ends, Stop> {
    if let Some(name) = &args.listen {
        let listener = Listener::builder(name).capacity(args.capacity).align(args.align).wait_policy(args.policy());
        return Ok(listener.accept_one(Some(PATIENCE))?.into());
    }
    if let Some(name) = &args.connect {
        return Ok(Bus::connector(name).timeout(PATIENCE).wait_policy(args.policy()).connect()?.into());
    }
    Ok(Ends {
        sender: to.map(|name| ring(name, args).sender()).transpose()?,
        receiver: from.map(|name| ring(name, args).receiver()).transpose()?,
    })
}

impl From<Bus> for Ends {
    fn from(bus: Bus) -> Self {
        let (sender, receiver) = bus.split();
        Self { sender, receiver }
    }
}

impl Ends {
    /// The sending half, and the line that says so.
    pub(crate) fn sending(&mut self) -> Result<&mut Sender, Stop> {
        let tx = self.sender.as_mut().ok_or(Stop::Usage("nothing to send to: --ring, --listen or --connect"))?;
        attached(tx.epoch(), tx.peer_epoch(), tx.capacity(), tx.max_message_len());
        Ok(tx)
    }

    /// The receiving half, and the line that says so.
    pub(crate) fn receiving(&mut self) -> Result<&mut Receiver, Stop> {
        let rx = self.receiver.as_mut().ok_or(Stop::Usage("nothing to receive from: --ring, --listen or --connect"))?;
        attached(rx.epoch(), rx.peer_epoch(), rx.capacity(), longest(rx.capacity()));
        Ok(rx)
    }

    /// Closes in an orderly way. What it says on a bus whose peer is dead does not matter.
    pub(crate) fn close(self) {
        if let Some(tx) = self.sender {
            let _ = tx.close();
        }
        if let Some(rx) = self.receiver {
            let _ = rx.close();
        }
        println!("closed");
    }
}

/// The longest message of a ring.
pub(crate) fn longest(capacity: usize) -> usize {
    (capacity - 16).min((1 << 31) - 17)
}

fn attached(epoch: u32, peer_epoch: u32, capacity: usize, max: usize) {
    println!("attached pid={} epoch={epoch} peer_epoch={peer_epoch} capacity={capacity} max={max}", std::process::id());
}
