//! Every vector, played to the Rust core in this process: real files, memfds and sockets, a thread in place of the
//! program.

use std::collections::HashMap;
use std::fmt::Display;
use std::sync::mpsc::{Receiver as Listening, RecvTimeoutError, Sender as Saying, channel};
use std::time::{Duration, Instant};

use ramway::{Bus, Error, Listener, Publisher, Receiver, Region, Ring, Sender, Subscriber, Topic};
use ramway_agents::{Event, Heard};
use ramway_conformance::vectors::files::Result;
use ramway_conformance::vectors::model::Class;
use ramway_conformance::vectors::session::{Reader, Session};
use ramway_conformance::vectors::{Job, Vectors};
use ramway_conformance::work;

/// The core, as it is linked into this test.
struct Core;

/// A thread that does what an agent does, as far as the vectors need it.
struct Running {
    events: Listening<Event>,
    next: Option<Event>,
    commands: Saying<String>,
}

impl Reader for Core {
    fn start(&self) -> Result<Box<dyn Session>> {
        let (say, events) = channel();
        let (commands, told) = channel::<String>();
        std::thread::spawn(move || {
            let mut ends = Ends { sender: None, receiver: None, publisher: None, subscriber: None, said: Said(say) };
            while let Ok(line) = told.recv() {
                if let Err(error) = ends.obey(&line) {
                    ends.said.error("error", &error);
                }
            }
        });
        Ok(Box::new(Running { events, next: None, commands }))
    }
}

struct Said(Saying<Event>);

impl Said {
    fn say(&self, what: impl Display) {
        // A reader that has closed the output has seen enough.
        let _ = self.0.send(Event::parse(&what.to_string()));
    }

    fn error(&self, word: &str, error: &Error) {
        self.say(format_args!("{word} name={} number={}", error.kind().name(), error.code()));
    }
}

struct Ends {
    sender: Option<Sender>,
    receiver: Option<Receiver>,
    publisher: Option<Publisher>,
    subscriber: Option<Subscriber>,
    said: Said,
}

impl Ends {
    fn obey(&mut self, line: &str) -> ramway::Result<()> {
        let mut words = line.split(' ');
        let command = words.next().unwrap();
        let keys: HashMap<&str, &str> = words.map(|word| word.split_once('=').unwrap()).collect();
        let number = |key: &str| keys[key].parse::<u64>().unwrap();
        let said = |what: String| self.said.say(what);
        match command {
            "open" if keys.contains_key("topic") => self.open_topic(&keys)?,
            "open" => self.open(&keys)?,
            "close" => {
                (self.sender, self.receiver) = (None, None);
                (self.publisher, self.subscriber) = (None, None);
                self.said.say("closed");
            }
            "region" => {
                let region = Region::builder().timeout(WAIT_MAX).open(keys["name"])?;
                let mut bytes = vec![0; region.len() as usize];
                region.read_at(0, &mut bytes)?;
                said(format!("region len={} crc32={}", region.len(), crc32fast::hash(&bytes)));
            }
            "last" => match self.sender.as_ref().unwrap().last_tag() {
                Some(tag) => said(format!("last tag={tag}")),
                None => said("last none".to_owned()),
            },
            "produce" if self.publisher.is_some() => {
                let tx = self.publisher.as_mut().unwrap();
                match tx.try_send(number("start") as u32, b"") {
                    Ok(()) => self.said.say("sent"),
                    Err(error) => self.said.error("end", &error),
                }
            }
            "produce" => {
                let tx = self.sender.as_mut().unwrap();
                for seq in 0..number("count") as u32 {
                    let payload: Vec<u8> = (0..number("sizes")).map(|i| (u64::from(seq) + i) as u8).collect();
                    let tag = u64::from(crc32fast::hash(&payload)) << 32 | u64::from(seq);
                    if let Err(error) = tx.try_send_tagged(seq, tag, &payload) {
                        self.said.error("end", &error);
                        return Ok(());
                    }
                }
                self.said.say("sent");
            }
            "take" if self.subscriber.is_some() => {
                let rx = self.subscriber.as_mut().unwrap();
                let text = match keys.get("timeout") {
                    Some(ms) => rx.recv_timeout(Duration::from_millis(ms.parse().unwrap())),
                    None => rx.try_recv(),
                }
                .map(|message| {
                    let (type_id, tag, crc) = (message.type_id(), message.tag(), crc32fast::hash(&message));
                    let (seq, lost, len) = (message.seq(), message.lost(), message.len());
                    format!("message type_id={type_id} tag={tag} len={len} crc32={crc} seq={seq} lost={lost}")
                });
                match text {
                    Ok(text) => said(text),
                    Err(end) => {
                        let lost = end.lost().map_or(String::new(), |lost| format!(" lost={lost}"));
                        said(format!("end name={} number={}{lost}", end.kind().name(), end.code()));
                    }
                }
            }
            "take" => {
                let rx = self.receiver.as_mut().unwrap();
                let text = rx.recv_timeout(Duration::from_millis(number("timeout"))).map(|message| {
                    let (type_id, tag, crc) = (message.type_id(), message.tag(), crc32fast::hash(&message));
                    format!("message type_id={type_id} tag={tag} len={} crc32={crc}", message.len())
                });
                match text {
                    Ok(text) => said(text),
                    Err(end) => {
                        self.said.error("end", &end);
                        let again = rx.try_recv().map(drop).err();
                        let dead = again.as_ref().map(Error::kind) == Some(end.kind());
                        if end.kind() == ramway::ErrorKind::Corrupt && !dead {
                            self.said.say("it did not stay dead");
                        }
                    }
                }
            }
            other => panic!("{other}"),
        }
        Ok(())
    }

    fn open_topic(&mut self, keys: &HashMap<&str, &str>) -> ramway::Result<()> {
        let topic = Topic::open(keys["topic"]);
        let capacity = if keys["role"] == "producer" {
            self.publisher.insert(topic.publisher()?).capacity()
        } else {
            let topic = match keys["policy"] {
                "lossy" => topic.lossy().from_oldest(),
                "latest" => topic.latest(),
                _ => topic.reliable(),
            };
            let topic = match keys.get("label") {
                Some(label) => topic.label(*label).durable(true),
                None => topic,
            };
            self.subscriber.insert(topic.subscriber()?).capacity()
        };
        self.said.say(format_args!("attached capacity={capacity} max={}", capacity / 2 - 32));
        Ok(())
    }

    fn open(&mut self, keys: &HashMap<&str, &str>) -> ramway::Result<()> {
        let number = |key: &str| keys[key].parse::<u32>().unwrap();
        let produces = keys["role"] == "producer";
        (self.sender, self.receiver) = if let Some(path) = keys.get("connect") {
            Bus::connector(path).timeout(PATIENCE_ON_SOCKETS).connect()?.split()
        } else if let Some(path) = keys.get("listen") {
            let listener = Listener::builder(path).capacity(number("capacity").into()).align(number("align"));
            listener.accept_one(Some(PATIENCE_ON_SOCKETS))?.split()
        } else {
            let ring = match keys.get("create") {
                Some(_) => Ring::create(keys["ring"]).capacity(number("capacity").into()).align(number("align")),
                None => Ring::open(keys["ring"]).timeout(WAIT_MAX),
            };
            if produces { (Some(ring.sender()?), None) } else { (None, Some(ring.receiver()?)) }
        };
        let (epoch, peer, capacity) = if produces {
            let tx = self.sender.as_ref().expect("this direction is there");
            (tx.epoch(), tx.peer_epoch(), tx.capacity())
        } else {
            let rx = self.receiver.as_ref().expect("this direction is there");
            (rx.epoch(), rx.peer_epoch(), rx.capacity())
        };
        let max = (capacity - 16).min((1 << 31) - 17);
        self.said.say(format_args!("attached epoch={epoch} peer_epoch={peer} capacity={capacity} max={max}"));
        Ok(())
    }
}

/// Stale segments are waited for: long enough to be seen to have been.
const WAIT_MAX: Duration = Duration::from_millis(100);
const PATIENCE_ON_SOCKETS: Duration = Duration::from_secs(10);

impl Session for Running {
    fn tell(&mut self, line: &str) -> Result<()> {
        self.commands.send(line.to_owned()).map_err(|_| "it panicked".to_owned())
    }

    fn hear(&mut self, deadline: Instant) -> Heard {
        if let Some(event) = self.next.take() {
            return Heard::Event(event);
        }
        match self.events.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(event) => Heard::Event(event),
            Err(RecvTimeoutError::Timeout) => Heard::Silence,
            Err(RecvTimeoutError::Disconnected) => Heard::Ended,
        }
    }

    fn any(&mut self) -> bool {
        if self.next.is_none() {
            self.next = self.events.try_recv().ok();
        }
        self.next.is_some()
    }

    fn done(&mut self) -> Result<()> {
        Ok(())
    }

    fn remarks(&mut self) -> String {
        String::new()
    }
}

#[test]
fn the_core_reads_every_vector_as_it_says() {
    let vectors = Vectors::load().unwrap();
    let mut jobs = vectors.jobs(&std::env::var("RAMWAY_VECTORS_ONLY").unwrap_or_default());
    // Those of RPC the agent plays, and the core's own tests.
    jobs.retain(|job| !matches!(job, Job::Server(_) | Job::Client(_) | Job::RpcHandshake(_)));
    assert!(!jobs.is_empty());
    let topics = &vectors.topics.topics;
    let hostile = topics.iter().filter(|image| image.class == Class::Hostile).count();
    let readers: usize = topics.iter().map(|image| image.readers.len()).sum();
    assert!(readers > 100 && hostile > 20, "{readers} readers of topics, {hostile} hostile images");
    let results = work::each(&jobs, 8, |_, &job| vectors.play(job, &Core));
    let mut failures = Vec::new();
    for (&job, result) in jobs.iter().zip(results) {
        if let Err(cause) = result {
            let (name, role) = vectors.name(job);
            failures.push(format!("{name} as {role}: {cause}"));
        }
    }
    failures.sort();
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), jobs.len(), failures.join("\n"));
}
