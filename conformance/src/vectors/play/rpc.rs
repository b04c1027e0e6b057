//! Exchanges of RPC, with a language's server or client.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::time::Duration;

use ramway_agents::Event;

use super::{Answer, HELLO, Result, SEALS, Segments, Stage, WELCOME, files, same, tried};
use crate::vectors::handshake::{ACK, bytes};
use crate::vectors::image::unhex;
use crate::vectors::model::{Handshake, Side};
use crate::vectors::peer::Peer;
use crate::vectors::rpc::{
    BUS, CALL, CAPACITY, CREDIT, Call, DRAINING, End, Exchange, Expected, FEATURE, Frame, Outcome, PING, Rpc, Step,
    Take, message, plain, reply,
};
use crate::vectors::session::Reader;
use crate::vectors::socket::Socket;

/// What a server under test allows in the handshakes.
const IN_FLIGHT: u32 = 16;
/// The size of the memory of every bus.
const SIZE: u64 = 4096 + 2 * CAPACITY;

/// What a server must answer.
pub fn server(one: &Exchange, reader: &dyn Reader) -> Result<()> {
    let mut stage = Stage::new(None)?;
    serve(one, reader, &mut stage).map_err(|cause| stage.explain(cause))
}

/// What a client must make of a server.
pub fn client(one: &Exchange, rpc: &Rpc, reader: &dyn Reader) -> Result<()> {
    let mut stage = Stage::new(None)?;
    call(one, rpc, reader, &mut stage).map_err(|cause| stage.explain(cause))
}

/// A handshake.
pub fn handshake(one: &Handshake, rpc: &Rpc, reader: &dyn Reader) -> Result<()> {
    let mut stage = Stage::new(None)?;
    greet(one, rpc, reader, &mut stage).map_err(|cause| stage.explain(cause))
}

/// A server listens.
fn listens(stage: &mut Stage, reader: &dyn Reader, max_in_flight: u32, max_bytes: Option<u64>) -> Result<()> {
    let path = stage.folder.at("bus").display().to_string();
    let bytes = max_bytes.map_or(String::new(), |bytes| format!(" max_bytes={bytes}"));
    let keys = format!("capacity={CAPACITY} align=16 max_in_flight={max_in_flight}{bytes}");
    stage.start(reader, &format!("open rpc={path} role=server {keys}"))?;
    stage.attached().map(drop)
}

/// A client of this server that is connected.
fn connects(stage: &mut Stage, max_in_flight: u32) -> Result<Peer> {
    let socket = stage.connect()?.rpc(max_in_flight);
    socket.send(&message(HELLO, FEATURE, 0, 0), &[])?;
    let memory = socket.receive(Answer { kind: WELCOME, status: 0 }, stage.deadline)?;
    let peer = Peer::new(&memory.ok_or("WELCOME without memory")?, socket, false)?;
    peer.socket()?.send(&bytes(ACK, 0, 0), &[])?;
    Ok(peer)
}

/// The next client is served.
fn next_is_served(stage: &mut Stage, max_in_flight: u32) -> Result<()> {
    let served = |cause| format!("the next client is not served: {cause}");
    let mut peer = connects(stage, max_in_flight).map_err(served)?;
    peer.send(&[plain(1, 1, b"next")], stage.deadline)?;
    receive(&mut peer, stage, &[reply(1, 0, b"next").into()]).map_err(served)?;
    peer.close()
}

impl From<Frame> for Expected {
    fn from(Frame { type_id, tag, hex }: Frame) -> Self {
        Self { type_id, tag, hex, or: None, any_text: false, timeout_at_most: None }
    }
}

/// Whether a frame is the expected one.
fn is(frame: &Frame, expected: &Expected) -> bool {
    let mut payload = frame.hex.clone();
    if let (Some(most), Some(found)) = (expected.timeout_at_most, unhex(&frame.hex)) {
        let timeout = found.get(..4).map_or(0, |word| u32::from_le_bytes(word.try_into().expect("4 bytes")));
        if !(1..=most).contains(&timeout) {
            return false;
        }
        payload.replace_range(..8, "00000000");
    }
    let text = |more: &str| unhex(more).is_some_and(|bytes| String::from_utf8(bytes).is_ok());
    let right = payload == expected.hex
        || expected.or.as_ref() == Some(&payload)
        || expected.any_text && payload.strip_prefix(&expected.hex).is_some_and(text);
    (frame.type_id, &frame.tag) == (expected.type_id, &expected.tag) && right
}

/// The next frames are these, in any order.
fn receive(peer: &mut Peer, stage: &Stage, expected: &[Expected]) -> Result<()> {
    let mut left: Vec<_> = expected.iter().collect();
    while !left.is_empty() {
        let frame = peer.receive(stage.deadline).map_err(|cause| format!("{cause}; expected {:x?}", left[0]))?;
        match left.iter().position(|one| is(&frame, one)) {
            Some(at) => drop(left.remove(at)),
            None if frame.type_id == CREDIT && left.iter().all(|one| one.type_id != CREDIT) => {}
            None => return Err(format!("it publishes {frame:x?}, expected {:x?}", left[0])),
        }
    }
    Ok(())
}

/// Calls of method 1 and of ping are answered until the former is refused: the server drains.
fn until_draining(peer: &mut Peer, stage: &Stage, from: u64) -> Result<()> {
    for id in (from..).step_by(2) {
        peer.send(&[plain(id, 1, &[])], stage.deadline)?;
        let frame = peer.receive(stage.deadline)?;
        let drains = frame == reply(id, DRAINING, &[]);
        if !drains && frame != reply(id, 0, &[]) {
            return Err(format!(
                "it publishes {frame:x?}, expected a reply to call {id}, or its refusal with status {DRAINING}"
            ));
        }
        peer.send(&[plain(id + 1, PING, &[])], stage.deadline)?;
        receive(peer, stage, &[reply(id + 1, 0, &[]).into()])?;
        if drains {
            break;
        }
    }
    Ok(())
}

/// A step of the other side; `false` if it is none.
fn of_peer(step: &Step, peer: &mut Peer, stage: &Stage) -> Result<bool> {
    match step {
        Step::Send(frames) => peer.send(frames, stage.deadline)?,
        Step::Receive(expected) => receive(peer, stage, std::slice::from_ref(expected))?,
        Step::ReceiveAll(expected) => receive(peer, stage, expected)?,
        Step::Quiet(ms) => {
            if let Some(frame) = peer.next_within(Duration::from_millis(*ms))? {
                return Err(format!("it publishes {frame:x?}, expected nothing"));
            }
        }
        Step::UntilDraining(from) => until_draining(peer, stage, *from)?,
        Step::Close => peer.close()?,
        Step::HangUp => peer.hang_up(),
        _ => return Ok(false),
    }
    Ok(true)
}

fn serve(one: &Exchange, reader: &dyn Reader, stage: &mut Stage) -> Result<()> {
    listens(stage, reader, one.max_in_flight, one.max_bytes)?;
    let mut other = connects(stage, one.max_in_flight)?;
    let mut peer = connects(stage, one.max_in_flight)?;
    for (i, step) in one.steps.iter().enumerate() {
        let at = |cause| format!("step {}: {cause}", i + 1);
        if of_peer(step, &mut peer, stage).map_err(at)? {
            continue;
        }
        let (command, answer) = match step {
            Step::Gate => ("gate".to_owned(), "opened"),
            Step::Shutdown(limit) => (format!("shutdown limit={limit}"), "draining"),
            _ => return Err(at("it is for a client".into())),
        };
        stage.tell(&command).and_then(|()| stage.expect(answer)).map_err(at)?;
    }
    if one.end != End::Closed {
        let disturbed = |cause| format!("another client is disturbed: {cause}");
        other.send(&[plain(1, 1, b"other")], stage.deadline).map_err(disturbed)?;
        receive(&mut other, stage, &[reply(1, 0, b"other").into()]).map_err(disturbed)?;
        other.close()?;
    }
    match one.end {
        End::Open => {
            // Whether it is there: with as many calls in flight as there may be, that is refused.
            let calls = one.steps.iter().map(|step| match step {
                Step::Send(frames) => frames.iter().filter(|frame| frame.type_id == CALL).count() as u64,
                _ => 0,
            });
            let id = calls.sum::<u64>() + 1;
            peer.send(&[plain(id, PING, &[])], stage.deadline)?;
            let alive = Expected { or: Some(reply(id, 5, &[]).hex), ..reply(id, 0, &[]).into() };
            receive(&mut peer, stage, &[alive])?;
            peer.close()?;
        }
        End::Corrupt => {
            peer.ended(stage.deadline)?;
            next_is_served(stage, one.max_in_flight)?;
        }
        End::PeerDead => next_is_served(stage, one.max_in_flight)?,
        End::Closed => {
            if !peer.ended(stage.deadline)? {
                return Err("it hangs up without a close".into());
            }
            stage.tell("join")?;
            stage.expect("ended")?;
        }
    }
    stage.ended()
}

/// A client's program: the calls and the streams that it keeps, and what must come of them.
#[derive(Default)]
struct Program {
    /// Of each call of the exchange, whether it is a stream.
    streams: Vec<bool>,
    calls: Kept,
    reading: Kept,
}

/// What the program keeps and waits for together.
#[derive(Default)]
struct Kept {
    count: usize,
    /// What came of them so far.
    outcomes: Vec<Outcome>,
    /// Elements that were taken.
    taken: usize,
    /// Whether it waits for them.
    waits: bool,
}

impl Program {
    fn step(&mut self, step: &Step, stage: &mut Stage) -> Result<()> {
        match step {
            Step::Call(call) => {
                stage.tell(&command(call)?)?;
                stage.expect("started")?;
                self.streams.push(call.window > 0);
                self.kept(self.streams.len() as u32)?.1.count += 1;
            }
            Step::Take(take) => {
                let (_, kept) = self.kept(take.call)?;
                kept.waits(true, stage)?;
                kept.taken += take.elements.len();
            }
            Step::Cancel(_) => {
                stage.tell("cancel")?;
                same(&stage.expect("cancelled")?, "count", self.calls.count + self.reading.count)?;
                (self.calls, self.reading) = Default::default();
            }
            Step::Outcome(outcome) => {
                let (stream, kept) = self.kept(outcome.call)?;
                kept.waits(stream, stage)?;
                kept.outcomes.push(outcome.clone());
                if kept.outcomes.len() == kept.count {
                    return std::mem::take(kept).came(stream, stage);
                }
            }
            _ => return Err("it is for a server".into()),
        }
        Ok(())
    }

    /// Whether a call is a stream, and what it is kept with.
    fn kept(&mut self, call: u32) -> Result<(bool, &mut Kept)> {
        let stream = *self.streams.get(call as usize - 1).ok_or("there is no such call")?;
        Ok((stream, if stream { &mut self.reading } else { &mut self.calls }))
    }

    /// Before the other side waits for a frame: the program goes on with the next thing that it waits for.
    fn goes_on(&mut self, steps: &[Step], stage: &mut Stage) -> Result<()> {
        let next = steps.iter().find_map(|step| match step {
            Step::Outcome(Outcome { call, .. }) | Step::Take(Take { call, .. }) => Some(Some(*call)),
            Step::Call(_) | Step::Cancel(_) | Step::Quiet(_) => Some(None),
            _ => None,
        });
        let Some(Some(call)) = next else { return Ok(()) };
        let (stream, kept) = self.kept(call)?;
        kept.waits(stream, stage)
    }
}

impl Kept {
    fn waits(&mut self, stream: bool, stage: &mut Stage) -> Result<()> {
        if !self.waits {
            self.waits = true;
            stage.tell(if stream { "next" } else { "collect" })?;
        }
        Ok(())
    }

    /// What the program says of all of them.
    fn came(self, stream: bool, stage: &mut Stage) -> Result<()> {
        let event = stage.expect(if stream { "streamed" } else { "called" })?;
        let mut names = BTreeMap::<&str, usize>::new();
        for outcome in &self.outcomes {
            *names.entry(&outcome.name).or_default() += 1;
        }
        for (name, count) in names {
            same(&event, name, count)?;
        }
        let run = self.outcomes.iter().filter(|outcome| outcome.may_have_run == Some(true)).count();
        same(&event, "may_have_run", run)?;
        if let Some(elements) = self.outcomes.iter().find_map(|outcome| outcome.elements.as_ref()) {
            same(&event, "received", self.taken + elements.len())?;
        }
        let bytes = self.outcomes.iter().filter_map(|outcome| outcome.body.as_ref()).map(|hex| hex.len() / 2);
        if stream { Ok(()) } else { same(&event, "bytes", bytes.sum::<usize>()) }
    }
}

/// What starts a call: everything in it follows from its number.
fn command(call: &Call) -> Result<String> {
    let Call { method, seq, meta, body, window, timeout_us } = call;
    let deadline = if *timeout_us > 0 { format!(" deadline={timeout_us}") } else { String::new() };
    if *window > 0 {
        let words = files::bytes(body)?;
        let words: Vec<_> = words.chunks(4).map(|word| u32::from_le_bytes(word.try_into().expect("4 bytes"))).collect();
        let [count, size, code, seq] = words[..] else { return Err("the body of a stream's call".into()) };
        return Ok(format!("stream count={count} size={size} code={code} start={seq} window={window}{deadline}"));
    }
    Ok(format!("start method={method} start={seq} sizes={} meta={}{deadline}", body.len() / 2, meta.len() / 2))
}

/// A server for the client under test.
fn accepts(stage: &mut Stage, rpc: &Rpc, reader: &dyn Reader, one: &Exchange) -> Result<(Peer, Event)> {
    let max_in_flight = one.max_in_flight;
    let bound = tried("bind", UnixListener::bind(stage.folder.at("bus")))?;
    let path = stage.folder.at("bus").display().to_string();
    let buffered = one.max_buffered.map_or(String::new(), |bytes| format!(" max_buffered={bytes}"));
    stage.start(reader, &format!("open rpc={path} role=client{buffered}"))?;
    let socket = Socket::accept(&bound, stage.deadline)?.rpc(max_in_flight);
    socket.receive(Answer { kind: HELLO, status: 0 }, stage.deadline)?;
    let image = rpc.images.iter().find(|one| one.name == BUS).ok_or("there is no image of a good bus")?;
    let memory = files::memory(image, image.size, &SEALS.map(String::from))?;
    let welcome = message(WELCOME, FEATURE, SIZE, max_in_flight);
    let peer = Peer::new(&memory, socket, true)?;
    peer.socket()?.send(&welcome, &[memory.as_fd()])?;
    peer.socket()?.receive(Answer { kind: ACK, status: 0 }, stage.deadline)?;
    let attached = stage.attached()?.ok_or("it is attached twice")?;
    Ok((peer, attached))
}

fn call(one: &Exchange, rpc: &Rpc, reader: &dyn Reader, stage: &mut Stage) -> Result<()> {
    let (mut peer, attached) = accepts(stage, rpc, reader, one)?;
    same(&attached, "max_in_flight", one.max_in_flight)?;
    same(&attached, "peer_pid", std::process::id())?;
    let mut program = Program::default();
    for (i, step) in one.steps.iter().enumerate() {
        let at = |cause| format!("step {}: {cause}", i + 1);
        if matches!(step, Step::Receive(_) | Step::ReceiveAll(_)) {
            program.goes_on(&one.steps[i..], stage).map_err(at)?;
        }
        if !of_peer(step, &mut peer, stage).map_err(at)? {
            program.step(step, stage).map_err(at)?;
        }
    }
    let name = match one.end {
        End::Open => return stage.ended(),
        End::Closed => "Closed",
        End::PeerDead => "PeerDead",
        End::Corrupt => "Corrupt",
    };
    stage.tell("call method=1")?;
    same(&stage.expect("called")?, name, 1)?;
    stage.ended()
}

fn greet(one: &Handshake, rpc: &Rpc, reader: &dyn Reader, stage: &mut Stage) -> Result<()> {
    let images = Segments { format: rpc.format.clone(), segments: rpc.images.clone() };
    let listener = match one.reader {
        Side::Listener => {
            listens(stage, reader, IN_FLIGHT, None)?;
            None
        }
        Side::Connector => {
            let path = stage.folder.at("bus");
            let bound = tried("bind", UnixListener::bind(&path))?;
            stage.start(reader, &format!("open rpc={} role=client", path.display()))?;
            Some(bound)
        }
    };
    let socket = match &listener {
        None => stage.connect()?,
        Some(bound) => Socket::accept(bound, stage.deadline)?,
    };
    let mut socket = Some(socket.rpc(IN_FLIGHT));
    let mut memory = None;
    for (i, step) in one.steps.iter().enumerate() {
        stage.step(step, &images, &mut socket, &mut memory).map_err(|cause| format!("step {}: {cause}", i + 1))?;
    }
    match (one.outcome.open.as_str(), one.reader) {
        ("ok", Side::Listener) => {
            let memory = memory.ok_or("there was no WELCOME")?;
            let mut peer = Peer::new(&memory, socket.take().ok_or("there is no connection any more")?, false)?;
            peer.send(&[plain(1, 1, b"first")], stage.deadline)?;
            receive(&mut peer, stage, &[reply(1, 0, b"first").into()])?;
            peer.close()?;
        }
        ("ok", Side::Connector) => stage.attached().map(drop)?,
        ("refused", _) => {
            drop(socket.take());
            next_is_served(stage, IN_FLIGHT)?;
        }
        (error, _) => {
            // A second try would find no listener: that is for a listener that went away, not for one that answers.
            drop(listener);
            stage.error(error)?;
        }
    }
    stage.ended()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_compared_as_the_vector_says() {
        let expected = |hex: &str| Expected::from(Frame { type_id: CALL, tag: "1".into(), hex: hex.into() });
        let frame = |hex: &str| Frame { type_id: CALL, tag: "1".into(), hex: hex.into() };
        assert!(is(&frame("0102"), &expected("0102")) && !is(&frame("0103"), &expected("0102")));
        assert!(!is(&Frame { tag: "2".into(), ..frame("0102") }, &expected("0102")));
        assert!(!is(&Frame { type_id: CREDIT, ..frame("0102") }, &expected("0102")));
        let or = Expected { or: Some("0103".into()), ..expected("0102") };
        assert!(is(&frame("0102"), &or) && is(&frame("0103"), &or) && !is(&frame("0104"), &or));
        let text = Expected { any_text: true, ..expected("0102") };
        assert!(is(&frame("0102"), &text) && is(&frame("010261"), &text));
        assert!(!is(&frame("0102ff"), &text) && !is(&frame("01"), &text));
        let limited = Expected { timeout_at_most: Some(256), ..expected("0000000007") };
        assert!(is(&frame("0001000007"), &limited) && is(&frame("0100000007"), &limited));
        assert!(
            !is(&frame("0000000007"), &limited) && !is(&frame("0101000007"), &limited) && !is(&frame("01"), &limited)
        );
    }

    #[test]
    fn a_call_is_told_by_its_numbers() {
        let one = Call { method: 1, seq: 3, meta: "0405".into(), body: "03".into(), window: 0, timeout_us: 9 };
        assert_eq!(command(&one).unwrap(), "start method=1 start=3 sizes=1 meta=2 deadline=9");
        let body = "02000000080000000000000003000000".into();
        let one = Call { window: 4, method: 4, meta: String::new(), body, timeout_us: 0, ..one };
        assert_eq!(command(&one).unwrap(), "stream count=2 size=8 code=0 start=3 window=4");
    }
}
