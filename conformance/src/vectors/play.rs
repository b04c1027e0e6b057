//! Plays one vector to one reader and compares what it says.

pub mod rpc;
mod topic;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use ramway_agents::{Event, Heard};

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
use super::session::{Reader, Session};
use crate::folder::Folder;
pub use topic::topic;

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
const ERRORS: [&str; 19] = [
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
    "Lagged",
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
    let command = match expected.role {
        Role::Region => format!("region name={path}"),
        role => format!("open role={} ring={path}", role.name()),
    };
    stage.start(reader, &command)?;
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
    stage.start(reader, &format!("open role={} connect={}", expected.role.name(), path.display()))?;
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
    stage.listen(reader, Role::Consumer)?;
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
    let role = outcome.role.unwrap_or(Role::Consumer);
    let mut listener = None;
    let socket = match one.reader {
        Side::Listener => {
            stage.listen(reader, role)?;
            stage.connect()?
        }
        Side::Connector => {
            let path = stage.folder.at("bus");
            let bound = tried("bind", UnixListener::bind(&path))?;
            stage.start(reader, &format!("open role={} connect={}", role.name(), path.display()))?;
            let socket = super::socket::Socket::accept(&bound, stage.deadline)?;
            listener = Some(bound);
            socket
        }
    };
    let mut socket = Some(socket);
    let mut memory = None;
    for (i, step) in one.steps.iter().enumerate() {
        let pokes = one.steps[i..].iter().any(|step| matches!(step, Step::Poke(_)));
        stage.step(step, images, &mut socket, &mut memory).map_err(|cause| format!("step {}: {cause}", i + 1))?;
        // It receives from when it can.
        if outcome.open == "ok" && !pokes && !stage.attached && stage.session().any() {
            stage.attached()?;
            stage.receive()?;
        }
    }
    match outcome.open.as_str() {
        "ok" => {
            stage.attached()?;
            stage.messages(&outcome.messages)?;
            stage.end(outcome.end.as_deref())?;
        }
        "refused" => {
            drop(socket.take());
            return stage.good_connector();
        }
        error => {
            // A second try would find no listener: that is for a listener that went away, not for one that answers.
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
    stage.start(reader, &format!("open role=producer ring={path} create=yes capacity={capacity} align={align}"))?;
    stage.expect("attached")?;
    stage.tell(&format!("produce count={count} sizes=40"))?;
    stage.expect("sent")?;
    let file = tried(&path, std::fs::File::options().read(true).write(true).open(&path))?;
    let mode = tried("fstat", rustix::fs::fstat(&file))?.st_mode & 0o7777;
    if mode != 0o600 {
        return Err(format!("the file's mode is {mode:o}, expected 600"));
    }
    locks::check(&file, Role::Producer)?;
    made::compare(file.as_fd(), &made.image(), true)?;
    stage.ended()
}

fn made_bus(made: Made, reader: &dyn Reader, stage: &mut Stage) -> Result<()> {
    let (capacity, align) = made.asked();
    stage.listen_with(reader, Role::Consumer, capacity, align)?;
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
    stage.attached()?;
    drop(socket);
    stage.end(Some("PeerDead"))?;
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
    /// Whether it has said so.
    attached: bool,
    /// Whether it receives already.
    receiving: bool,
}

impl Stage {
    fn new(end: Option<&str>) -> Result<Self> {
        let folder = tried("a directory for the image", Folder::new())?;
        let timeout = if end == Some("TimedOut") { SHORT } else { LONG };
        let deadline = Instant::now() + LIMIT;
        Ok(Self { folder, session: None, deadline, timeout, attached: false, receiving: false })
    }

    /// A failure with what the reader says about it.
    fn explain(&mut self, cause: String) -> String {
        match self.session.as_mut().map(|session| session.remarks()) {
            Some(remarks) if !remarks.is_empty() => format!("{cause} ({remarks})"),
            _ => cause,
        }
    }

    fn start(&mut self, reader: &dyn Reader, command: &str) -> Result<()> {
        self.session = Some(reader.start()?);
        self.tell(command)
    }

    fn tell(&mut self, command: &str) -> Result<()> {
        self.session().tell(command)
    }

    fn listen(&mut self, reader: &dyn Reader, role: Role) -> Result<()> {
        self.listen_with(reader, role, 4096, 16)
    }

    fn listen_with(&mut self, reader: &dyn Reader, role: Role, capacity: u64, align: u64) -> Result<()> {
        let (role, path) = (role.name(), self.folder.at("bus").display().to_string());
        self.start(reader, &format!("open role={role} listen={path} capacity={capacity} align={align}"))
    }

    fn session(&mut self) -> &mut dyn Session {
        self.session.as_deref_mut().expect("started before it is heard")
    }

    fn connect(&mut self) -> Result<super::socket::Socket> {
        let (path, deadline) = (self.folder.at("bus"), self.deadline);
        let session = self.session();
        super::socket::Socket::connect(&path, deadline, || session.any())
    }

    /// A correct connector, which gets a bus and goes.
    fn good_connector(&mut self) -> Result<()> {
        let socket = self.connect()?;
        let served = |cause| format!("the next connector is not served: {cause}");
        socket.send(&handshake::bytes(HELLO, 0, 0), &[])?;
        socket.receive(Answer { kind: WELCOME, status: 0 }, self.deadline).map_err(served)?;
        socket.send(&handshake::bytes(ACK, 0, 0), &[])?;
        self.attached().map_err(served)?;
        drop(socket);
        self.end(Some("PeerDead"))?;
        self.ended()
    }

    fn step(
        &mut self,
        step: &Step,
        images: &Segments,
        socket: &mut Option<super::socket::Socket>,
        memory: &mut Option<OwnedFd>,
    ) -> Result<()> {
        if let Step::Poke(runs) = step {
            self.attached()?;
            let memory = memory.as_ref().ok_or("there is no memory to write into")?;
            return files::poke(memory.as_fd(), runs);
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
        let event = self.attached()?.ok_or("it is attached twice")?;
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
        let produces = expected.role == Role::Producer && expected.open == "ok";
        let send = format!("produce count=1 how=try sizes={}", expected.send.unwrap_or(0));
        if let Some(Then { when, bytes, hang_up }) = &expected.then {
            if *when == When::Waiting && produces {
                self.tell("last")?;
                self.tell(&send)?;
                self.receiving = true;
            } else if *when == When::Waiting {
                self.receive()?;
            }
            self.then(*when, bytes, file)?;
            if *when == When::Waiting && !*hang_up {
                let block = if socket.is_some() && expected.role == Role::Producer { BLOCKS[1] } else { BLOCKS[0] };
                let role = if expected.role == Role::Producer { PRODUCER } else { CONSUMER };
                files::wake(file, block + role + WAIT)?;
            }
            if *hang_up {
                socket = None;
            }
        }
        if produces && !self.receiving {
            self.tell("last")?;
            self.tell(&send)?;
        }
        if produces {
            let event = self.expect("last")?;
            match expected.last.as_deref().unwrap_or("none") {
                "none" if event.get("none").is_none() => return Err("it finds a last message, expected none".into()),
                "none" => {}
                tag => same(&event, "tag", tag)?,
            }
        }
        self.messages(&expected.messages)?;
        self.end_as(expected.role, expected.end.as_deref())?;
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
            self.receive()?;
            let event = self.answer("message").map_err(|cause| format!("message {i}: {cause}"))?;
            same(&event, "type_id", message.type_id)?;
            same(&event, "tag", &message.tag)?;
            same(&event, "len", message.len)?;
            same(&event, "crc32", message.crc32)?;
        }
        Ok(())
    }

    /// The first time it is asked for: what it says of what it has opened.
    fn attached(&mut self) -> Result<Option<Event>> {
        if self.attached {
            return Ok(None);
        }
        self.attached = true;
        self.expect("attached").map(Some)
    }

    /// Has it receive one message, unless it does already.
    fn receive(&mut self) -> Result<()> {
        if !self.receiving {
            // Ways to receive that only some languages have.
            let how = std::env::var("RAMWAY_CONFORMANCE_READ").map(|how| format!(" how={how}")).unwrap_or_default();
            self.tell(&format!("take timeout={}{how}", self.timeout))?;
            self.receiving = true;
        }
        Ok(())
    }

    /// What came of that.
    fn answer(&mut self, what: &str) -> Result<Event> {
        self.receiving = false;
        self.expect(what)
    }

    fn end(&mut self, end: Option<&str>) -> Result<()> {
        self.end_as(Role::Consumer, end)
    }

    /// How what it was told last ends.
    fn end_as(&mut self, role: Role, end: Option<&str>) -> Result<()> {
        let Some(name) = end else { return Ok(()) };
        if name == "sent" {
            return self.expect("sent").map(drop);
        }
        if role == Role::Consumer {
            self.receive()?;
        }
        let event = self.answer(&format!("end name={name}"))?;
        same(&event, "number", number(name)?)
    }

    fn error(&mut self, name: &str) -> Result<()> {
        let event = self.expect(&format!("error name={name}"))?;
        same(&event, "number", number(name)?)
    }

    /// The next event, which must be this one: a word, or with a name.
    fn expect(&mut self, what: &str) -> Result<Event> {
        let (word, name) = what.split_once(" name=").unwrap_or((what, ""));
        let deadline = self.deadline;
        match self.session().hear(deadline) {
            // Any event: the caller looks.
            Heard::Event(event) if word.is_empty() => Ok(event),
            Heard::Event(event) if event.word == word && (name.is_empty() || event.get("name") == Some(name)) => {
                Ok(event)
            }
            Heard::Event(event) => Err(format!("it says '{}', expected {what}", event.line)),
            Heard::Silence => Err(format!("it hangs before {what}")),
            Heard::Ended => Err(format!("it ends before {what}")),
        }
    }

    /// It says nothing more, and closes what is open.
    fn ended(&mut self) -> Result<()> {
        self.tell("close")?;
        self.expect("closed")?;
        self.session().done()
    }
}

fn same(event: &Event, key: &str, expected: impl std::fmt::Display) -> Result<()> {
    let expected = expected.to_string();
    match event.get(key) {
        Some(found) if found == expected => Ok(()),
        found => Err(format!("{}: it says {key}={}, expected {expected}", event.word, found.unwrap_or("nothing"))),
    }
}
