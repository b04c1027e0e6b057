//! The other process of the JavaScript tests: holds one or two ends and does with them what standard input says.
//!
//! `ramway-node-peer PLACE...`, where a place is `out=NAME` (a ring to send to), `in=NAME` (a ring to receive from),
//! `listen=NAME` or `connect=NAME` (a bus), `region=NAME`, `serve=NAME` (an RPC server, of `server.rs`), `rpc-listen=NAME` (one by hand),
//! `call=NAME` (a client of one, of `calls.rs`); `create=yes`, `capacity=BYTES`, `align=BYTES` and `wait=POLICY` before it are
//! about the places that follow. It prints `ready pid=PID` once it has them all.
//!
//! Then every line of standard input is a command, and is answered by one line, `WORD key=value ...`, when it is done:
//!
//! | command | answer |
//! | --- | --- |
//! | `send COUNT SIZES START` | `sent next=SEQ`: messages START to START + COUNT − 1, each visible at once |
//! | `batch COUNT SIZES START` | the same, published together where there is room |
//! | `commit COUNT SIZES START` | `committed next=SEQ`: not visible before a `flush` |
//! | `resume COUNT SIZES` | `sent …`, from the number after the ring's last message |
//! | `flush` | `flushed` |
//! | `recv COUNT START` | `received next=SEQ`: COUNT messages (0: all) from START on, every byte checked |
//! | `tensors COUNT START`, `recv-tensors COUNT START` | `sent next=SEQ`, `received next=SEQ`: of `tensor.rs` |
//! | `flood SIZE` | messages of so many bytes, of any content, until somebody ends this process or the other one |
//! | `skip COUNT` | `skipped next=COUNT`: COUNT messages (0: all), unchecked |
//! | `hold` | `holding seq=SEQ`: has a message in hand until the next line, which is answered `released` |
//! | `echo COUNT` | `echoed count=N`: gives back COUNT messages (0: all) as they came |
//! | `write OFFSET HEX`, `frame OFFSET HEX` | `written`: bytes over the segment's, `OFFSET` of the file; over ring data, of block 0 |
//! | `peek OFFSET COUNT` | `bytes hex=…`: of the ring data of block 0 |
//! | `region add OFFSET COUNT` | `added`: 1 to the 32-bit number there, atomically, COUNT times |
//! | `region store OFFSET HEX`, `region load OFFSET COUNT` | `stored`, `bytes hex=…` |
//! | `region notify`, `region wait` | `notified`, `awaited` |
//! | `serve held COUNT`, `serve cancelled COUNT`, `serve made COUNT` | `held count=N` …: once so many calls of method 3 wait, or were cancelled, or elements of streams were made |
//! | `serve release` | `released count=N`: the calls that wait have their replies |
//! | `serve drain MS`, `serve shutdown MS` | `draining`: the server shuts down; `ended`: and has |
//! | `call start COUNT METHOD SIZE MS` | `started first=N`: calls with a request of SIZE bytes and a time limit, which are numbered from 0 on |
//! | `call wait N` | `reply text=…`, or `failed status=STATUS code=N may_have_run=… text=…` |
//! | `call wait-all` | `waited STATUS=COUNT …`: of the calls that are under way, in the order of their numbers |
//! | `call stream METHOD TEXT WINDOW MS`, `call next N` | `started first=N`, `reply text=…` for an element, `complete` or `failed …` |
//! | `call cancel N`, `call state` | `cancelled`, `state in_flight=N` |
//! | `state` | `state out_used=N in_used=N` |
//! | `sleep MS` | `slept` |
//! | `close` | `closed`: both ends, in an orderly way |
//! | `quit` | ends without closing in words; the end of standard input does the same |
//!
//! What a call of the library refuses is answered `error name=KIND next=SEQ`, what arrives damaged `bad seq=SEQ text=…`.

mod calls;
mod memory;
mod message;
mod region;
mod server;
mod tensor;

use std::io::{BufRead, Stdin, Write};
use std::process::ExitCode;
use std::str::FromStr;
use std::thread;
use std::time::Duration;

use message::{Sizes, payload, tag};
use ramway::{Bus, Error, ErrorKind, Listener, Receiver, Region, Ring, RingBuilder, Sender, WaitPolicy};

/// How long to wait for a name, a role or the other side.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// What a command ends with where it does not end well: the answer's line.
struct Refused(String);

impl From<&'static str> for Refused {
    fn from(what: &'static str) -> Self {
        Self(format!("usage text={what}"))
    }
}

impl From<std::io::Error> for Refused {
    fn from(cause: std::io::Error) -> Self {
        Self(format!("failed text={cause}"))
    }
}

/// An error of the library, and the number of the message that met it.
fn refused(cause: &Error, next: u64) -> Refused {
    Refused(format!("error name={} next={next} text={cause}", cause.kind().name()))
}

struct Options {
    create: bool,
    capacity: u64,
    align: u32,
    wait: WaitPolicy,
}

impl Options {
    fn ring(&self, name: &str) -> RingBuilder {
        let builder =
            if self.create { Ring::create(name).capacity(self.capacity).align(self.align) } else { Ring::open(name) };
        builder.timeout(WAIT_MAX).wait_policy(self.wait)
    }
}

#[derive(Default)]
struct Ends {
    out: Option<Sender>,
    input: Option<Receiver>,
    region: Option<Region>,
    serving: Option<server::Serving>,
    calls: Option<calls::Calls>,
}

impl Ends {
    fn open(words: impl Iterator<Item = String>) -> Result<Self, Refused> {
        let mut options = Options { create: false, capacity: 65536, align: 16, wait: WaitPolicy::Hybrid };
        let mut ends = Self::default();
        for word in words {
            let (key, value) = word.split_once('=').ok_or("a flag is KEY=VALUE")?;
            ends.apply(&mut options, key, value)?;
        }
        Ok(ends)
    }

    fn apply(&mut self, options: &mut Options, key: &str, value: &str) -> Result<(), Refused> {
        let failed = |cause: Error| refused(&cause, 0);
        match key {
            "create" => options.create = value == "yes",
            "capacity" => options.capacity = number(Some(value))?,
            "align" => options.align = number(Some(value))?,
            "wait" => {
                options.wait = match value {
                    "spin" => WaitPolicy::Spin,
                    "block" => WaitPolicy::Block,
                    _ => WaitPolicy::Hybrid,
                }
            }
            "out" => self.out = Some(options.ring(value).sender().map_err(failed)?),
            "in" => self.input = Some(options.ring(value).receiver().map_err(failed)?),
            "listen" | "rpc-listen" => {
                let mut listener = Listener::builder(value).capacity(options.capacity).align(options.align);
                if key == "rpc-listen" {
                    listener = listener.rpc(8);
                }
                let bus = listener.wait_policy(options.wait).accept_one(Some(WAIT_MAX)).map_err(failed)?;
                (self.out, self.input) = bus.split();
            }
            "connect" => {
                let bus = Bus::connector(value).timeout(WAIT_MAX).wait_policy(options.wait).connect();
                (self.out, self.input) = bus.map_err(failed)?.split();
            }
            "region" => self.region = Some(region::open(value)?),
            "serve" => self.serving = Some(server::serve(value)?),
            "call" => self.calls = Some(calls::open(value, options.wait)?),
            _ => return Err("an unknown flag".into()),
        }
        Ok(())
    }

    fn sender(&mut self) -> Result<&mut Sender, Refused> {
        self.out.as_mut().ok_or("no end to send with".into())
    }

    fn receiver(&mut self) -> Result<&mut Receiver, Refused> {
        self.input.as_mut().ok_or("no end to receive with".into())
    }

    /// Messages `start` to `start + count − 1`, visible after each, at the end or not at all.
    fn send(&mut self, count: u64, sizes: Sizes, start: u64, flush: Flush) -> Result<u64, Refused> {
        let sender = self.sender()?;
        let longest = sender.max_message_len();
        for seq in start..start + count {
            put(sender, seq, sizes.of(seq, longest), flush).map_err(|cause| refused(&cause, seq))?;
        }
        if flush == Flush::AtTheEnd {
            sender.flush().map_err(|cause| refused(&cause, start + count))?;
        }
        Ok(start + count)
    }

    fn receive(&mut self, count: u64, start: u64) -> Result<u64, Refused> {
        let receiver = self.receiver()?;
        let mut next = start;
        while count == 0 || next < start + count {
            let message = receiver.recv().map_err(|cause| refused(&cause, next))?;
            if let Some(damage) = message::damage(next, message.type_id(), message.tag(), &message) {
                return Err(Refused(format!("bad seq={next} text={damage}")));
            }
            next += 1;
        }
        Ok(next)
    }

    fn echo(&mut self, count: u64) -> Result<u64, Refused> {
        let (Some(sender), Some(receiver)) = (self.out.as_mut(), self.input.as_mut()) else {
            return Err("an echo needs both ends".into());
        };
        let mut done = 0;
        while count == 0 || done < count {
            let message = match receiver.recv() {
                Ok(message) => message,
                Err(cause) if count == 0 && cause.kind() == ErrorKind::Closed => break,
                Err(cause) => return Err(refused(&cause, done)),
            };
            sender.send_tagged(message.type_id(), message.tag(), &message).map_err(|cause| refused(&cause, done))?;
            done += 1;
        }
        Ok(done)
    }

    /// Has a message in hand until the next line.
    fn hold(&mut self, lines: &Stdin) -> Result<(), Refused> {
        let message = self.receiver()?.recv().map_err(|cause| refused(&cause, 0))?;
        say(&format!("holding seq={}", message.tag() & 0xFFFF_FFFF))?;
        lines.lock().read_line(&mut String::new())?;
        message.release();
        Ok(())
    }

    fn close(&mut self) -> Result<(), Refused> {
        if let Some(sender) = self.out.take() {
            sender.close().map_err(|cause| refused(&cause, 0))?;
        }
        if let Some(receiver) = self.input.take() {
            receiver.close().map_err(|cause| refused(&cause, 0))?;
        }
        Ok(())
    }

    fn command(&mut self, line: &str, lines: &Stdin) -> Result<String, Refused> {
        let mut words = line.split_ascii_whitespace();
        let word = words.next().unwrap_or("");
        Ok(match word {
            "send" | "batch" | "commit" => {
                let (count, sizes) = (number(words.next())?, number(words.next())?);
                let (flush, said) = match word {
                    "send" => (Flush::Each, "sent"),
                    "batch" => (Flush::AtTheEnd, "sent"),
                    _ => (Flush::No, "committed"),
                };
                format!("{said} next={}", self.send(count, sizes, number(words.next().or(Some("0")))?, flush)?)
            }
            "resume" => {
                let (count, sizes) = (number(words.next())?, number(words.next())?);
                let start = self.sender()?.last_tag().map_or(0, |tag| (tag & 0xFFFF_FFFF) + 1);
                format!("sent next={}", self.send(count, sizes, start, Flush::Each)?)
            }
            "flush" => {
                self.sender()?.flush().map_err(|cause| refused(&cause, 0))?;
                "flushed".to_owned()
            }
            "recv" => {
                let count = number(words.next())?;
                format!("received next={}", self.receive(count, number(words.next().or(Some("0")))?)?)
            }
            "tensors" | "recv-tensors" => {
                let (count, start): (u64, u64) = (number(words.next())?, number(words.next())?);
                for seq in start..start + count {
                    let failed = |cause| refused(&cause, seq);
                    if word == "tensors" {
                        tensor::send(self.sender()?, seq).map_err(failed)?;
                    } else if let Some(damage) = tensor::damage(seq, &self.receiver()?.recv().map_err(failed)?) {
                        return Err(Refused(format!("bad seq={seq} text={damage}")));
                    }
                }
                let said = if word == "tensors" { "sent" } else { "received" };
                format!("{said} next={}", start + count)
            }
            "flood" => {
                let message: Vec<u8> = vec![0x5A; number(words.next())?];
                loop {
                    self.sender()?.send(0, &message).map_err(|cause| refused(&cause, 0))?;
                }
            }
            "skip" => {
                let (count, mut done): (u64, u64) = (number(words.next())?, 0);
                while count == 0 || done < count {
                    self.receiver()?.recv().map_err(|cause| refused(&cause, done))?;
                    done += 1;
                }
                format!("skipped next={done}")
            }
            "hold" => {
                self.hold(lines)?;
                "released".to_owned()
            }
            "echo" => format!("echoed count={}", self.echo(number(words.next())?)?),
            "write" | "frame" => {
                let offset: u64 = number(words.next())?;
                let bytes = memory::from_hex(words.next().ok_or("bytes are missing")?).ok_or("not hexadecimal")?;
                memory::write(if word == "frame" { memory::data_of_block_0()? + offset } else { offset }, &bytes)?;
                "written".to_owned()
            }
            "peek" => {
                let at = memory::data_of_block_0()? + number::<u64>(words.next())?;
                format!("bytes hex={}", memory::to_hex(&memory::read(at, number(words.next())?)?))
            }
            "say" => {
                let (type_id, id): (u32, u64) = (number(words.next())?, number(words.next())?);
                let payload = memory::from_hex(words.next().unwrap_or_default()).ok_or("not hexadecimal")?;
                server::say(self.sender()?, type_id, id, &payload).map_err(|cause| refused(&cause, id))?;
                "said".to_owned()
            }
            "state" => {
                let out = self.out.as_ref().map_or(0, Sender::len);
                format!("state out_used={out} in_used={}", self.input.as_ref().map_or(0, Receiver::len))
            }
            "serve" => server::command(self.serving.as_mut().ok_or("no server")?, &mut words)?,
            "call" => self.calls.as_mut().ok_or("no client")?.command(&mut words)?,
            "region" => region::command(self.region.as_ref().ok_or("no region")?, &mut words)?,
            "sleep" => {
                thread::sleep(Duration::from_millis(number(words.next())?));
                "slept".to_owned()
            }
            "close" => {
                self.close()?;
                "closed".to_owned()
            }
            _ => return Err("an unknown command".into()),
        })
    }
}

/// Sends message number `seq`, waiting for room.
fn put(sender: &mut Sender, seq: u64, len: usize, flush: Flush) -> ramway::Result<()> {
    let mut slot = sender.reserve(len)?.with_type_id((seq % 60_000) as u32);
    payload(seq, &mut slot);
    let tag = tag(seq, &slot);
    let slot = slot.with_tag(tag);
    if flush == Flush::Each { slot.commit(len) } else { slot.commit_unflushed(len) }
}

/// When messages become visible.
#[derive(Clone, Copy, PartialEq)]
enum Flush {
    Each,
    AtTheEnd,
    No,
}

fn number<T: FromStr>(word: Option<&str>) -> Result<T, Refused> {
    word.and_then(|word| word.parse().ok()).ok_or("a number is missing".into())
}

/// Answers at once: the test waits for it.
fn say(line: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

fn run() -> Result<(), Refused> {
    let mut ends = Ends::open(std::env::args().skip(1))?;
    say(&format!("ready pid={}", std::process::id()))?;
    let lines = std::io::stdin();
    loop {
        let mut line = String::new();
        if lines.lock().read_line(&mut line)? == 0 || line.trim() == "quit" {
            return Ok(());
        }
        let answer = ends.command(&line, &lines).unwrap_or_else(|Refused(why)| why);
        say(&answer)?;
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(Refused(why)) => {
            // The test reads why; nobody may be left to read it, then the status says it.
            let _ = say(&why);
            ExitCode::FAILURE
        }
    }
}
