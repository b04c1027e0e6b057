//! Redis from one to many, the newest value, and from many to one. `PUBLISH` and `SUBSCRIBE`: each message is a round trip to
//! the server, as the client's calls are. The server delivers at most once, and ends the connection of a subscriber that is 32
//! MiB behind, which connects again then and has lost what was sent meanwhile. Beside it 32 messages go before their answers
//! are read, and the server keeps all that a subscriber has not taken. The newest value is `SET` and `GET`; producers push to
//! one list.

use super::{Result, STRANGE, Server, bound, connect, push, socket};
use ramway_bench::fan::{Fan, Gather, Reads, Ticket, Writes};
use ramway_bench::{About, Burst, Kind, Setup, Test};
use redis::{Connection, Value as Answer};
use std::any::Any;
use std::path::PathBuf;

/// By when the answers to `PUBLISH` are read.
#[derive(Clone, Copy)]
pub enum PubSub {
    /// Each before the next message.
    Each,
    /// After some messages; no subscriber is thrown out.
    Pipelined,
}

/// The newest value.
#[derive(Clone, Copy)]
pub struct Value;

/// Several producers.
#[derive(Clone, Copy)]
pub struct Producers;

/// Messages whose answers are read together.
const TOGETHER: u32 = 32;
const NAME: &str = "fan";

/// Publishes. The connection goes before the server.
pub struct Publisher {
    connection: Connection,
    /// Commands that were not sent yet, and how many.
    out: Vec<u8>,
    waiting: u32,
    together: u32,
    _server: Server,
}

/// A connection that has subscribed.
pub struct Subscriber {
    connection: Connection,
    /// The server's socket.
    path: PathBuf,
}

impl Subscriber {
    fn new(path: PathBuf) -> Result<Self> {
        let mut connection = connect(&path)?;
        connection.send_packed_command(&redis::cmd("SUBSCRIBE").arg(NAME).get_packed_command())?;
        // That it is subscribed.
        connection.recv_response()?;
        Ok(Self { connection, path })
    }
}

/// Sets the value.
pub struct Setter {
    connection: Connection,
    _server: Server,
}

/// Gets the value.
pub struct Getter(Connection);

/// Pushes to the list.
pub struct Producer {
    connection: Connection,
    bound: i64,
}

/// Pops from the list.
pub struct Consumer(Connection);

fn about(name: &str, what: &str) -> About {
    let what = format!("a redis-server on a Unix socket: {what}");
    About::new(name, Kind::Peer, true, &what).version(env!("PEER_VERSION"))
}

fn ticket(server: &Server) -> Ticket {
    Ticket { processes: vec![server.0.id()], ..Ticket::default() }
}

fn filled(size: usize, fill: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut message = vec![0; size];
    fill(&mut message);
    message
}

/// The bytes of an answer.
fn bytes_of(answer: Option<&Answer>, size: usize) -> Result<&[u8]> {
    match answer {
        Some(Answer::BulkString(bytes)) if bytes.len() == size => Ok(bytes),
        Some(Answer::BulkString(bytes)) => Err(format!("{} bytes instead of {size}", bytes.len()).into()),
        _ => Err(STRANGE.into()),
    }
}

impl Fan for PubSub {
    type Writer = Publisher;
    type Reader = Subscriber;

    fn about(&self) -> About {
        match self {
            Self::Each => about("redis-pubsub", "PUBLISH, one after the other, and SUBSCRIBE"),
            Self::Pipelined => about("redis-pubsub-pipelined", &format!("{TOGETHER} PUBLISH at a time, and SUBSCRIBE")),
        }
    }

    fn can(&self, burst: &Burst) -> bool {
        burst.test == Test::Readers
    }

    fn writer(&self, setup: &Setup) -> Result<(Publisher, Ticket)> {
        let unlimited: &[&str] = &["--client-output-buffer-limit", "pubsub 0 0 0"];
        let server = Server::start(setup, if matches!(self, Self::Each) { &[] } else { unlimited })?;
        let (connection, ticket) = (connect(&socket(setup))?, ticket(&server));
        let together = if matches!(self, Self::Each) { 1 } else { TOGETHER };
        Ok((Publisher { connection, out: Vec::new(), waiting: 0, together, _server: server }, ticket))
    }

    fn readers(&self, setup: &Setup, _ticket: &str, burst: &Burst) -> Result<Vec<Subscriber>> {
        (0..burst.threads).map(|_| Subscriber::new(socket(setup))).collect()
    }
}

impl Writes for Publisher {
    #[inline(always)]
    fn write(&mut self, size: usize, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        redis::cmd("PUBLISH").arg(NAME).arg(filled(size, fill)).write_packed_command(&mut self.out);
        self.waiting += 1;
        if self.waiting == self.together { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        if self.waiting > 0 {
            self.connection.send_packed_command(&self.out)?;
            self.out.clear();
        }
        for _ in 0..std::mem::take(&mut self.waiting) {
            // How many have got it: a subscriber that was thrown out is found by what it misses.
            self.connection.recv_response()?;
        }
        Ok(())
    }
}

impl Reads for Subscriber {
    const DROPS: bool = true;

    #[inline(always)]
    fn next(&mut self, size: usize, mut read: impl FnMut(&[u8])) -> Result<u64> {
        loop {
            match self.connection.recv_response() {
                // What it is, the channel, the message.
                Ok(Answer::Array(answer)) => {
                    read(bytes_of(answer.get(2), size)?);
                    return Ok(0);
                }
                Ok(_) => return Err(STRANGE.into()),
                // Thrown out: what is lost is counted by the numbers of the messages.
                Err(error) if error.is_connection_dropped() => *self = Self::new(self.path.clone())?,
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Fan for Value {
    type Writer = Setter;
    type Reader = Getter;

    fn about(&self) -> About {
        about("redis-get", "SET, and GET as often as one can")
    }

    fn can(&self, burst: &Burst) -> bool {
        burst.test == Test::Latest
    }

    fn writer(&self, setup: &Setup) -> Result<(Setter, Ticket)> {
        let server = Server::start(setup, &[])?;
        let (connection, ticket) = (connect(&socket(setup))?, ticket(&server));
        Ok((Setter { connection, _server: server }, ticket))
    }

    fn readers(&self, setup: &Setup, _ticket: &str, _burst: &Burst) -> Result<Vec<Getter>> {
        Ok(vec![Getter(connect(&socket(setup))?)])
    }
}

impl Writes for Setter {
    #[inline(always)]
    fn write(&mut self, size: usize, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        Ok(redis::cmd("SET").arg(NAME).arg(filled(size, fill)).exec(&mut self.connection)?)
    }
}

impl Reads for Getter {
    fn next(&mut self, _size: usize, _read: impl FnMut(&[u8])) -> Result<u64> {
        Err("has nothing but the newest value".into())
    }

    #[inline(always)]
    fn newest(&mut self, size: usize, mut read: impl FnMut(&[u8])) -> Result<()> {
        let answer: Answer = redis::cmd("GET").arg(NAME).query(&mut self.0)?;
        read(bytes_of(Some(&answer), size)?);
        Ok(())
    }
}

impl Gather for Producers {
    type Writer = Producer;
    type Reader = Consumer;

    fn about(&self) -> About {
        about("redis-producers", "a list, to which each producer adds by RPUSH; BLPOP")
    }

    fn can(&self, burst: &Burst) -> bool {
        burst.test == Test::Producers
    }

    fn prepare(&self, setup: &Setup) -> Result<(Ticket, Box<dyn Any>)> {
        let server = Server::start(setup, &[])?;
        Ok((ticket(&server), Box::new(server)))
    }

    fn writers(&self, setup: &Setup, burst: &Burst) -> Result<Vec<Producer>> {
        let open = |_| Ok(Producer { connection: connect(&socket(setup))?, bound: bound(setup) });
        (0..burst.threads).map(open).collect()
    }

    fn reader(&self, setup: &Setup, _ticket: &str, _burst: &Burst) -> Result<Consumer> {
        Ok(Consumer(connect(&socket(setup))?))
    }
}

impl Writes for Producer {
    #[inline(always)]
    fn write(&mut self, size: usize, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        push(&mut self.connection, NAME, std::iter::once(filled(size, fill)), self.bound)
    }
}

impl Reads for Consumer {
    #[inline(always)]
    fn next(&mut self, size: usize, mut read: impl FnMut(&[u8])) -> Result<u64> {
        // The list's name, and a message.
        match redis::cmd("BLPOP").arg(NAME).arg(0).query(&mut self.0)? {
            Answer::Array(answer) => read(bytes_of(answer.get(1), size)?),
            _ => return Err(STRANGE.into()),
        }
        Ok(0)
    }
}
