//! Every vector, played to the Rust core in this process: real files, memfds and sockets, a thread in place of the
//! program.

use std::fmt::Display;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ramway::{Bus, Error, Listener, Region, Ring};
use ramway_conformance::vectors::Vectors;
use ramway_conformance::vectors::files::Result;
use ramway_conformance::vectors::session::{Lines, Reader, Session};
use ramway_conformance::work;

/// The core, as it is linked into this test.
struct Core;

/// A `read` under way.
struct Running {
    lines: Lines,
    go_on: Sender<()>,
    thread: Option<JoinHandle<()>>,
}

impl Reader for Core {
    fn start(&self, arguments: &[String], _dir: &Path) -> Result<Box<dyn Session>> {
        let arguments = arguments.to_vec();
        let (say, lines) = channel();
        let (go_on, told) = channel();
        let thread = std::thread::spawn(move || {
            let flag = |name: &str| {
                let at = arguments.iter().position(|argument| argument == name)?;
                Some(arguments[at + 1].as_str())
            };
            let told = || told.recv().expect("the runner lets it go on");
            let said = Said(say);
            let outcome = match arguments[0].as_str() {
                "produce" => make(&flag, &told, &said),
                _ => read(&flag, &told, &said),
            };
            if let Err(error) = outcome {
                said.say(format_args!("error name={} number={}", error.kind().name(), error.code()));
            }
        });
        Ok(Box::new(Running { lines: Lines::new(lines), go_on, thread: Some(thread) }))
    }
}

struct Said(Sender<String>);

impl Said {
    fn say(&self, what: impl Display) {
        // Whoever no longer listens has seen enough.
        let _ = self.0.send(what.to_string());
    }

    fn end(&self, error: &Error) {
        self.say(format_args!("end name={} number={}", error.kind().name(), error.code()));
    }
}

/// The `produce` command, as far as it makes a ring and sends short messages into it.
fn make<'a>(flag: &dyn Fn(&str) -> Option<&'a str>, told: &dyn Fn(), said: &Said) -> ramway::Result<()> {
    let number = |name: &str| flag(name).unwrap().parse::<u32>().unwrap();
    let ring = Ring::create(flag("--ring").unwrap()).capacity(number("--capacity").into()).align(number("--align"));
    let mut tx = ring.sender()?;
    said.say("attached");
    for seq in 0..number("--count") {
        let payload: Vec<u8> = (0..number("--sizes")).map(|i| (seq + i) as u8).collect();
        tx.send_tagged(seq, u64::from(crc32fast::hash(&payload)) << 32 | u64::from(seq), &payload)?;
    }
    said.say("sent");
    told();
    tx.close()?;
    said.say("closed");
    Ok(())
}

fn read<'a>(flag: &dyn Fn(&str) -> Option<&'a str>, told: &dyn Fn(), said: &Said) -> ramway::Result<()> {
    // Stale segments are waited for: long enough to be seen to have been.
    let patience = Duration::from_millis(100);
    if let Some(path) = flag("--region") {
        let region = Region::builder().timeout(patience).open(path)?;
        let mut bytes = vec![0; region.len() as usize];
        region.read_at(0, &mut bytes)?;
        said.say(format_args!("region len={} crc32={}", region.len(), crc32fast::hash(&bytes)));
        return Ok(());
    }
    let timeout = Duration::from_millis(flag("--timeout").unwrap().parse().unwrap());
    let patience_on_sockets = Duration::from_secs(10);
    let ends = if let Some(path) = flag("--connect") {
        Bus::connector(path).timeout(patience_on_sockets).connect()?.split()
    } else if let Some(path) = flag("--listen") {
        let number = |name: &str| flag(name).unwrap().parse::<u32>().unwrap();
        let listener = Listener::builder(path).capacity(number("--capacity").into()).align(number("--align"));
        listener.accept_one(Some(patience_on_sockets))?.split()
    } else {
        let ring = Ring::open(flag("--ring").unwrap()).timeout(patience);
        match flag("--role").unwrap() {
            "producer" => (Some(ring.sender()?), None),
            _ => (None, Some(ring.receiver()?)),
        }
    };
    let (mut tx, mut rx) = ends;
    let attached = |epoch: u32, peer: u32, capacity: usize| {
        let max = (capacity - 16).min((1 << 31) - 17);
        said.say(format_args!("attached epoch={epoch} peer_epoch={peer} capacity={capacity} max={max}"));
        if flag("--pause").is_some() {
            told();
        }
    };
    if flag("--role") == Some("producer") {
        let tx = tx.as_mut().expect("this direction is there");
        attached(tx.epoch(), tx.peer_epoch(), tx.capacity());
        match tx.last_tag() {
            Some(tag) => said.say(format_args!("last tag={tag}")),
            None => said.say("last none"),
        }
        let size: u64 = flag("--size").unwrap_or("0").parse().unwrap();
        let payload: Vec<u8> = (0..size).map(|i| i as u8).collect();
        match tx.try_send_tagged(0, u64::from(crc32fast::hash(&payload)) << 32, &payload) {
            Ok(()) => said.say("sent"),
            Err(error) => said.end(&error),
        }
    } else {
        let rx = rx.as_mut().expect("this direction is there");
        attached(rx.epoch(), rx.peer_epoch(), rx.capacity());
        let end = loop {
            match rx.recv_timeout(timeout) {
                Ok(message) => {
                    let (type_id, tag, len, crc) =
                        (message.type_id(), message.tag(), message.len(), crc32fast::hash(&message));
                    said.say(format_args!("message type_id={type_id} tag={tag} len={len} crc32={crc}"));
                }
                Err(error) => break error,
            }
        };
        said.end(&end);
        let again = rx.try_recv().map(drop).err();
        if end.kind() == ramway::ErrorKind::Corrupt && again.as_ref().map(Error::kind) != Some(end.kind()) {
            said.say("it did not stay dead");
        }
    }
    drop((tx, rx));
    said.say("closed");
    Ok(())
}

impl Session for Running {
    fn lines(&mut self) -> &mut Lines {
        &mut self.lines
    }

    fn go_on(&mut self) -> Result<()> {
        let _ = self.go_on.send(());
        Ok(())
    }

    fn finish(&mut self, _deadline: Instant) -> Result<()> {
        // Its output has ended, so it has nothing left to do.
        match self.thread.take().map(JoinHandle::join) {
            Some(Err(_)) => Err("it panicked".into()),
            _ => Ok(()),
        }
    }

    fn remarks(&mut self) -> String {
        String::new()
    }
}

#[test]
fn the_core_reads_every_vector_as_it_says() {
    let vectors = Vectors::load().unwrap();
    let jobs = vectors.jobs(&std::env::var("RAMWAY_VECTORS_ONLY").unwrap_or_default());
    assert!(!jobs.is_empty());
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
