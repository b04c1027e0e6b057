//! `open` and `close`.

use std::time::Duration;

use ramway::{Bus, Listener, Publisher, Receiver, Ring, RingBuilder, Sender, Subscriber, WaitPolicy};

use crate::Stop;
use crate::line::Line;
use crate::rpc::client::Calling;
use crate::rpc::{self, server::Serving, tasks::Tasks};
use crate::topic::{self, Kind};

/// Both halves of a bus, what a role needs of rings, one side of a topic, or a server or a client of RPC.
#[derive(Default)]
pub(crate) struct Ends {
    pub(crate) sender: Option<Sender>,
    pub(crate) receiver: Option<Receiver>,
    pub(crate) publisher: Option<Publisher>,
    pub(crate) subscriber: Option<Subscriber>,
    pub(crate) server: Option<Serving>,
    pub(crate) client: Option<Calling>,
    pub(crate) tasks: Option<Tasks>,
}

/// How long to wait for a name, a role or the other side.
pub(crate) const OPEN_TIMEOUT: Duration = Duration::from_secs(10);

struct Shape {
    create: bool,
    capacity: u64,
    align: u32,
    prefault: bool,
    wait: WaitPolicy,
}

impl Shape {
    fn ring(&self, name: &str) -> RingBuilder {
        let builder =
            if self.create { Ring::create(name).capacity(self.capacity).align(self.align) } else { Ring::open(name) };
        builder.timeout(OPEN_TIMEOUT).wait_policy(self.wait).prefault(self.prefault)
    }
}

impl From<Bus> for Ends {
    fn from(bus: Bus) -> Self {
        let (sender, receiver) = bus.split();
        Self { sender, receiver, ..Self::default() }
    }
}

impl Ends {
    pub(crate) fn open(&mut self, mut line: Line) -> Result<(), Stop> {
        let role: String = line.need("role")?;
        if let Some(name) = line.text("topic") {
            return topic::open(self, &name, &role, line);
        }
        if let Some(name) = line.text("rpc") {
            return rpc::open(self, &name, &role, line);
        }
        let [ring, back, listen, connect] = ["ring", "back", "listen", "connect"].map(|key| line.text(key));
        let shape = Shape {
            create: line.yes("create"),
            capacity: line.get("capacity", 65536)?,
            align: line.get("align", 16)?,
            prefault: line.yes("prefault"),
            wait: line.wait()?,
        };
        line.end()?;
        *self = if let Some(name) = listen {
            let listener = Listener::builder(name).capacity(shape.capacity).align(shape.align).wait_policy(shape.wait);
            listener.accept_one(Some(OPEN_TIMEOUT))?.into()
        } else if let Some(name) = connect {
            Bus::connector(name).timeout(OPEN_TIMEOUT).wait_policy(shape.wait).connect()?.into()
        } else {
            let (to, from) = if role == "consumer" { (None, ring) } else { (ring, back) };
            Self {
                sender: to.map(|name| shape.ring(&name).sender()).transpose()?,
                receiver: from.map(|name| shape.ring(&name).receiver()).transpose()?,
                ..Self::default()
            }
        };
        let (epoch, peer, capacity) = if role == "consumer" {
            let rx = self.receiving()?;
            (rx.epoch(), rx.peer_epoch(), rx.capacity())
        } else {
            let tx = self.sending()?;
            (tx.epoch(), tx.peer_epoch(), tx.capacity())
        };
        let (pid, max) = (std::process::id(), Ring::longest(capacity));
        println!("attached pid={pid} epoch={epoch} peer_epoch={peer} capacity={capacity} max={max}");
        Ok(())
    }

    pub(crate) fn sending(&mut self) -> Result<&mut Sender, Stop> {
        self.sender.as_mut().ok_or(Stop::Refused("there is nothing to send to".to_owned()))
    }

    pub(crate) fn receiving(&mut self) -> Result<&mut Receiver, Stop> {
        self.receiver.as_mut().ok_or(Stop::Refused("there is nothing to receive from".to_owned()))
    }

    /// Closes in an orderly way. What it says on a bus whose peer is dead does not matter.
    pub(crate) fn close(&mut self, line: Line) -> Result<(), Stop> {
        line.end()?;
        let Self { sender, receiver, publisher, subscriber, server, client, tasks } = std::mem::take(self);
        let _ = sender.map(Sender::close);
        let _ = receiver.map(Receiver::close);
        let _ = publisher.map(Publisher::close);
        let _ = subscriber.map(Subscriber::close);
        if let Some(client) = client {
            client.close();
        }
        if let Some(tasks) = tasks {
            tasks.close();
        }
        server.map_or(Ok(()), Serving::close)?;
        println!("closed");
        Ok(())
    }
}
