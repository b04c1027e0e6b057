//! Plays one vector to one reader and compares what it says.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use super::files::{self, Result, tried};
use super::handshake::{self, ACK, HELLO, WELCOME};
use super::image::{BLOCKS, CONSUMER, PRODUCER, WAIT};
use super::locks;
use super::made::{self, Made};
use super::model::{
    Answer, Descriptor, Handshake, Kind, NameAfter, Other, Reader as Expected, Role, Run, Segment, Segments, Side,
    Step, Then, When,
};
use super::segments::refused;
use super::session::{Heard, Reader, Session};
use crate::folder::Folder;
use crate::run::Event;

/// Nothing here takes nearly as long: only a hang does. The longest that is asked for is a name that does not come
/// back within 10 s.
const LIMIT: Duration = Duration::from_secs(60);
/// How long a reader is to wait for what does not come.
const SHORT: u64 = 250;
/// How long it may wait for what does come.
const LONG: u64 = 20_000;
/// Between the attach and what happens during the wait.
const ON_ITS_WAY: Duration = Duration::from_millis(60);
/// As section 12 wants them.
const SEALS: [&str; 3] = ["shrink", "grow", "seal"];

/// The names of section 14, from number 1 on.
const ERRORS: [&str; 18] = [
    "NotFound",
    "AlreadyExists",
    "InvalidArgument",
    "Busy",
    "Full",
    "Empty",
    "TooLarge",
    "TimedOut",
    "Closed",
    "Detached",
    "PeerDead",
    "Corrupt",
    "AbiMismatch",
    "PermissionDenied",
    "NoSpace",
    "Interrupted",
    "Unsupported",
    "Os",
];

fn number(name: &str) -> Result<u32> {
    let found = ERRORS.iter().position(|error| *error == name);
    found.map(|i| i as u32 + 1).ok_or_else(|| format!("there is no error '{name}'"))
}

/// One reader of one image.
pub fn segment(segment: &Segment, expected: &Expected, reader: &dyn Reader) -> Result<()> {
    let refused = Expected { held: expected.held, ..refused(expected.role, "Unsupported") };
    let too_large = expected.attached.is_some_and(|attached| attached.capacity > reader.largest_ring());
    let expected = if too_large { &refused } else { expected };
    let mut stage = Stage::new(expected.end.as_deref())?;
    let outcome = match segment.kind {
        Kind::Ring | Kind::Region => named(segment, expected, reader, &mut stage),
        Kind::Bus => bus(segment, expected, reader, &mut stage),
        Kind::Listener => listener(segment, expected, reader, &mut stage),
    };
    outcome.map_err(|cause| stage.explain(cause))
}

/// The image as a file with a name.
fn named(segment: &Segment, expected: &Expected, reader: &dyn Reader, stage: &mut Stage) -> Result<()> {
    let path = stage.folder.at("segment").display().to_string();
    let file = files::file(segment, path.as_ref())?;
    let holder = match expected.held {
        None => None,
        Some(role) => {
            // A description of its own, as every handle has one.
            let own = tried("opening it again", std::fs::OpenOptions::new().read(true).write(true).open(&path))?;
            locks::hold(&own, role)?;
            Some(own)
        }
    };
    let arguments = match expected.role {
        Role::Region => vec!["--region".into(), path.clone()],
        _ => stage.arguments(expected, "--ring", &path),
    };
    stage.start(reader, arguments)?;
    stage.open(expected)?;
    if expected.then.as_ref().is_some_and(|then| then.when == When::Paused) {
        // It waits for a word of ours, so it has them all now.
        locks::check(&file, expected.role)?;
    }
    stage.rest(expected, file.as_fd(), None)?;
    files::compare(file.as_fd(), &expected.leaves)?;
    let there = std::path::Path::new(&path).exists();
    drop(holder);
    match expected.name_after {
        Some(NameAfter::Stays) if !there => Err("the name is gone, but should stay".into()),
        Some(NameAfter::Gone) if there => Err("the name is still there, but nothing was left to deliver".into()),
        _ => Ok(()),
    }
}

/// The image as a bus's memory, sent by a correct listener.
fn bus(segment: &Segment, expected: &Expected, reader: &dyn Reader, stage: &mut Stage) -> Result<()> {
    let path = stage.folder.at("bus");
    let listener = tried("bind", UnixListener::bind(&path))?;
    let memory = files::memory(segment, segment.size, &SEALS.map(String::from))?;
    let arguments = stage.arguments(expected, "--connect", &path.display().to_string());
    stage.start(reader, arguments)?;
    let socket = super::socket::Socket::accept(&listener, stage.deadline)?;
    socket.receive(Answer { kind: HELLO, status: 0 }, stage.deadline)?;
    socket.send(&handshake::bytes(WELCOME, 0, segment.size), &[memory.as_fd()])?;
    let status = if expected.open == "ok" { 0 } else { number(&expected.open)? };
    socket.receive(Answer { kind: ACK, status }, stage.deadline)?;
    stage.open(expected)?;
    stage.rest(expected, memory.as_fd(), Some(socket))?;
    files::compare(memory.as_fd(), &expected.leaves)
}

/// The image in the place of a listener's segment.
fn listener(segment: &Segment, expected: &Expected, reader: &dyn Reader, stage: &mut Stage) -> Result<()> {
    let place = stage.folder.at("bus.lock");
    let file = files::file(segment, &place)?;
    stage.listen(reader, Role::Consumer, false)?;
    if expected.open == "ok" {
        stage.good_connector()?;
        return Ok(());
    }
    stage.open(expected)?;
    stage.ended()?;
    // Left as it is.
    files::compare(file.as_fd(), &segment.bytes)?;
    if place.exists() { Ok(()) } else { Err("it removed what is not a listener's".into()) }
}

/// One exchange.
pub fn handshake(one: &Handshake, images: &Segments, reader: &dyn Reader) -> Result<()> {
    let mut stage = Stage::new(one.outcome.end.as_deref())?;
    exchange(one, images, reader, &mut stage).map_err(|cause| stage.explain(cause))
}

fn exchange(one: &Handshake, images: &Segments, reader: &dyn Reader, stage: &mut Stage) -> Result<()> {
    let outcome = &one.outcome;
    let pokes = one.steps.iter().any(|step| matches!(step, Step::Poke(_)));
    let role = outcome.role.unwrap_or(Role::Consumer);
    let mut listener = None;
    let socket = match one.reader {
        Side::Listener => {
            stage.listen(reader, role, pokes)?;
            stage.connect()?
        }
        Side::Connector => {
            let path = stage.folder.at("bus");
            let bound = tried("bind", UnixListener::bind(&path))?;
            let path = path.display().to_string();
            let arguments = stage.common("--connect", &path, role, pokes);
            stage.start(reader, arguments)?;
            let socket = super::socket::Socket::accept(&bound, stage.deadline)?;
            listener = Some(bound);
            socket
        }
    };
    let mut socket = Some(socket);
    let mut memory = None;
    let mut seen = false;
    for (i, step) in one.steps.iter().enumerate() {
        stage
            .step(step, images, &mut socket, &mut memory, &mut seen)
            .map_err(|cause| format!("step {}: {cause}", i + 1))?;
    }
    match outcome.open.as_str() {
        "ok" => {
            if !seen {
                stage.expect("attached")?;
            }
            stage.messages(&outcome.messages)?;
            stage.end(outcome.end.as_deref())?;
            stage.closed()?;
        }
        "refused" => {
            drop(socket.take());
            return stage.good_connector();
        }
        error => {
            // Whoever tries again would find nobody: that is for a listener that went away, not for one that answers.
            drop(listener.take());
            stage.error(error)?;
        }
    }
    stage.ended()
}

/// What a language makes, against the page.
pub fn made(made: Made, reader: &dyn Reader) -> Result<()> {
    let mut stage = Stage::new(None)?;
    let outcome = match made {
        Made::Ring(..) | Made::Sent(..) => made_ring(made, reader, &mut stage),
        Made::Bus(..) => made_bus(made, reader, &mut stage),
    };
    outcome.map_err(|cause| stage.explain(cause))
}

fn made_ring(made: Made, reader: &dyn Reader, stage: &mut Stage) -> Result<()> {
    let path = stage.folder.at("ring").display().to_string();
    let ((capacity, align), count) = (made.asked(), made.count());
    let shape = format!("--ring {path} --create yes --capacity {capacity} --align {align}");
    let arguments = format!("{shape} --count {count} --sizes 40 --linger 60000");
    stage.run(reader, "produce", arguments.split(' ').map(String::from).collect())?;
    stage.expect("attached")?;
    stage.expect("sent")?;
    let file = tried(&path, std::fs::File::options().read(true).write(true).open(&path))?;
    let mode = tried("fstat", rustix::fs::fstat(&file))?.st_mode & 0o7777;
    if mode != 0o600 {
        return Err(format!("the file's mode is {mode:o}, expected 600"));
    }
    locks::check(&file, Role::Producer)?;
    made::compare(file.as_fd(), &made.image(), true)?;
    stage.session().go_on()?;
    stage.closed()?;
    stage.ended()
}

fn made_bus(made: Made, reader: &dyn Reader, stage: &mut Stage) -> Result<()> {
    let (capacity, align) = made.asked();
    stage.listen_with(reader, Role::Consumer, false, capacity, align)?;
    let socket = stage.connect()?;
    let place = stage.folder.at("bus.lock");
    let file = tried("the listener's segment", std::fs::File::options().read(true).write(true).open(&place))?;
    made::compare(file.as_fd(), &made::listener(), true)?;
    locks::check(&file, Role::Listener)?;
    socket.send(&handshake::bytes(HELLO, 0, 0), &[])?;
    let memory = socket.receive(Answer { kind: WELCOME, status: 0 }, stage.deadline)?;
    let memory = memory.ok_or("WELCOME without memory")?;
    made::compare(memory.as_fd(), &made.image(), false)?;
    socket.send(&handshake::bytes(ACK, 0, 0), &[])?;
    stage.expect("attached")?;
    drop(socket);
    stage.end(Some("PeerDead"))?;
    stage.closed()?;
    stage.ended()?;
    match stage.folder.at("bus").exists() || place.exists() {
        true => Err("the listener's names are still there".into()),
        false => Ok(()),
    }
}

/// A reader at work and what it needs.
struct Stage {
    /// Before its directory goes.
    session: Option<Box<dyn Session>>,
    folder: Folder,
    deadline: Instant,
    timeout: u64,
}

impl Stage {
    fn new(end: Option<&str>) -> Result<Self> {
        let folder = tried("a directory for the image", Folder::new())?;
        let timeout = if end == Some("TimedOut") { SHORT } else { LONG };
        Ok(Self { folder, session: None, deadline: Instant::now() + LIMIT, timeout })
    }

    /// A failure with what the reader says about it.
    fn explain(&mut self, cause: String) -> String {
        match self.session.as_mut().map(|session| session.remarks()) {
            Some(remarks) if !remarks.is_empty() => format!("{cause} ({remarks})"),
            _ => cause,
        }
    }

    fn arguments(&self, expected: &Expected, place: &str, path: &str) -> Vec<String> {
        let paused = expected.then.as_ref().is_some_and(|then| then.when == When::Paused);
        let mut arguments = self.common(place, path, expected.role, paused);
        if let Some(size) = expected.send {
            arguments.extend(["--size".into(), size.to_string()]);
        }
        arguments
    }

    fn common(&self, place: &str, path: &str, role: Role, paused: bool) -> Vec<String> {
        let timeout = self.timeout.to_string();
        let mut arguments: Vec<String> =
            [place, path, "--role", role.name(), "--timeout", &timeout].map(String::from).into();
        if paused {
            arguments.extend(["--pause".into(), "yes".into()]);
        }
        arguments
    }

    fn start(&mut self, reader: &dyn Reader, arguments: Vec<String>) -> Result<()> {
        self.run(reader, "read", arguments)
    }

    fn run(&mut self, reader: &dyn Reader, command: &str, mut arguments: Vec<String>) -> Result<()> {
        arguments.insert(0, command.into());
        self.session = Some(reader.start(&arguments, &self.folder.at(""))?);
        Ok(())
    }

    fn listen(&mut self, reader: &dyn Reader, role: Role, paused: bool) -> Result<()> {
        self.listen_with(reader, role, paused, 4096, 16)
    }

    fn listen_with(&mut self, reader: &dyn Reader, role: Role, paused: bool, capacity: u64, align: u64) -> Result<()> {
        let path = self.folder.at("bus").display().to_string();
        let mut arguments = self.common("--listen", &path, role, paused);
        let (capacity, align) = (capacity.to_string(), align.to_string());
        arguments.extend(["--capacity", &capacity, "--align", &align].map(String::from));
        self.start(reader, arguments)
    }

    fn session(&mut self) -> &mut dyn Session {
        self.session.as_deref_mut().expect("started before it is heard")
    }

    fn connect(&mut self) -> Result<super::socket::Socket> {
        let (path, deadline) = (self.folder.at("bus"), self.deadline);
        let session = self.session();
        super::socket::Socket::connect(&path, deadline, || session.lines().any())
    }

    /// A correct connector, which gets a bus and goes.
    fn good_connector(&mut self) -> Result<()> {
        let socket = self.connect()?;
        let served = |cause| format!("the next connector is not served: {cause}");
        socket.send(&handshake::bytes(HELLO, 0, 0), &[])?;
        socket.receive(Answer { kind: WELCOME, status: 0 }, self.deadline).map_err(served)?;
        socket.send(&handshake::bytes(ACK, 0, 0), &[])?;
        self.expect("attached").map_err(served)?;
        drop(socket);
        self.end(Some("PeerDead"))?;
        self.closed()?;
        self.ended()
    }

    fn step(
        &mut self,
        step: &Step,
        images: &Segments,
        socket: &mut Option<super::socket::Socket>,
        memory: &mut Option<OwnedFd>,
        seen: &mut bool,
    ) -> Result<()> {
        if let Step::Poke(runs) = step {
            self.expect("attached")?;
            *seen = true;
            let memory = memory.as_ref().ok_or("there is no memory to write into")?;
            files::poke(memory.as_fd(), runs)?;
            return self.session().go_on();
        }
        let connection = socket.as_ref().ok_or("there is no connection any more")?;
        match step {
            Step::Send(message) => {
                let descriptors: Vec<_> =
                    message.descriptors.iter().map(|what| self.descriptor(what, images)).collect::<Result<_>>()?;
                let borrowed: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
                connection.send(&files::bytes(&message.hex)?, &borrowed)
            }
            Step::Receive(answer) => {
                if let Some(sent) = connection.receive(*answer, self.deadline)? {
                    *memory = Some(sent);
                }
                Ok(())
            }
            Step::End => connection.end(self.deadline),
            Step::HangUp => {
                *socket = None;
                Ok(())
            }
            Step::Wait(ms) => {
                std::thread::sleep(Duration::from_millis(*ms));
                Ok(())
            }
            Step::Poke(_) => unreachable!("done above"),
        }
    }

    fn descriptor(&self, what: &Descriptor, images: &Segments) -> Result<OwnedFd> {
        let image = |name: &str| {
            let found = images.segments.iter().find(|segment| segment.name == name);
            found.ok_or_else(|| format!("there is no image '{name}'"))
        };
        match what {
            Descriptor::Memory(memory) => {
                let image = image(&memory.image)?;
                files::memory(image, memory.size.unwrap_or(image.size), &memory.seals)
            }
            Descriptor::Other(Other::DevNull) => {
                let file = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null");
                Ok(tried("/dev/null", file)?.into())
            }
            Descriptor::Other(Other::RegularFile) => {
                Ok(files::file(image("bus-empty")?, &self.folder.at("regular"))?.into())
            }
        }
    }

    /// What it says about opening.
    fn open(&mut self, expected: &Expected) -> Result<()> {
        if expected.open != "ok" {
            return self.error(&expected.open);
        }
        if let Some(region) = &expected.region {
            let event = self.expect("region")?;
            same(&event, "len", region.len)?;
            return same(&event, "crc32", region.crc32);
        }
        let event = self.expect("attached")?;
        let Some(attached) = expected.attached else { return Ok(()) };
        same(&event, "epoch", attached.epoch)?;
        same(&event, "peer_epoch", attached.peer_epoch)?;
        same(&event, "capacity", attached.capacity)?;
        same(&event, "max", attached.max)
    }

    /// Everything after that.
    fn rest(&mut self, expected: &Expected, file: BorrowedFd<'_>, socket: Option<super::socket::Socket>) -> Result<()> {
        // Held until the reader has ended, unless it is to hang up.
        let mut socket = socket;
        if let Some(Then { when, bytes, hang_up }) = &expected.then {
            self.then(*when, bytes, file)?;
            if *when == When::Waiting && !*hang_up {
                let block = if socket.is_some() && expected.role == Role::Producer { BLOCKS[1] } else { BLOCKS[0] };
                let role = if expected.role == Role::Producer { PRODUCER } else { CONSUMER };
                files::wake(file, block + role + WAIT)?;
            }
            if *hang_up {
                socket = None;
            }
            if *when == When::Paused {
                self.session().go_on()?;
            }
        }
        if let Some(last) = &expected.last {
            let event = self.expect("last")?;
            match last.as_str() {
                "none" if event.get("none").is_none() => return Err("it finds a last message, expected none".into()),
                "none" => {}
                tag => same(&event, "tag", tag)?,
            }
        }
        self.messages(&expected.messages)?;
        self.end(expected.end.as_deref())?;
        if expected.end.is_some() {
            self.closed()?;
        }
        self.ended()?;
        drop(socket);
        Ok(())
    }

    fn then(&mut self, when: When, runs: &[Run], file: BorrowedFd<'_>) -> Result<()> {
        if when == When::Waiting {
            std::thread::sleep(ON_ITS_WAY);
        }
        files::poke(file, runs)
    }

    fn messages(&mut self, messages: &[super::model::Message]) -> Result<()> {
        for (i, message) in messages.iter().enumerate() {
            let event = self.expect("message").map_err(|cause| format!("message {i}: {cause}"))?;
            same(&event, "type_id", message.type_id)?;
            same(&event, "tag", &message.tag)?;
            same(&event, "len", message.len)?;
            same(&event, "crc32", message.crc32)?;
        }
        Ok(())
    }

    fn end(&mut self, end: Option<&str>) -> Result<()> {
        match end {
            None => Ok(()),
            Some("sent") => self.expect("sent").map(drop),
            Some(name) => {
                let event = self.expect(&format!("end name={name}"))?;
                same(&event, "number", number(name)?)
            }
        }
    }

    fn error(&mut self, name: &str) -> Result<()> {
        let event = self.expect(&format!("error name={name}"))?;
        same(&event, "number", number(name)?)
    }

    fn closed(&mut self) -> Result<()> {
        self.expect("closed").map(drop)
    }

    /// The next event, which must be this one: a word, or with a name.
    fn expect(&mut self, what: &str) -> Result<Event> {
        let (word, name) = what.split_once(" name=").unwrap_or((what, ""));
        let deadline = self.deadline;
        let said = match self.session().lines().hear(deadline) {
            Heard::Line(line) => {
                let event = Event::parse(&line);
                if event.word == word && (name.is_empty() || event.get("name") == Some(name)) {
                    return Ok(event);
                }
                format!("it says '{line}', expected {what}")
            }
            Heard::Silence => format!("it hangs before {what}"),
            Heard::Ended => {
                let how = self.session().finish(deadline).err().unwrap_or_else(|| "it ends".into());
                format!("{how} before {what}")
            }
        };
        Err(said)
    }

    /// Nothing more comes, and it ends by itself.
    fn ended(&mut self) -> Result<()> {
        let deadline = self.deadline;
        loop {
            match self.session().lines().hear(deadline) {
                // Of a region, it may say that it has closed it.
                Heard::Line(line) if line == "closed" => {}
                Heard::Line(line) => return Err(format!("it goes on with '{line}'")),
                Heard::Silence => return Err("it hangs after its last event".into()),
                Heard::Ended => break,
            }
        }
        self.session().finish(deadline)
    }
}

fn same(event: &Event, key: &str, expected: impl std::fmt::Display) -> Result<()> {
    let expected = expected.to_string();
    match event.get(key) {
        Some(found) if found == expected => Ok(()),
        found => Err(format!("{}: it says {key}={}, expected {expected}", event.word, found.unwrap_or("nothing"))),
    }
}
