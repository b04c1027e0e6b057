//! Ramway in other languages: rows whose two sides are agents (`agents/README.md`), started and told what to do by a leading
//! process of this program, which then sleeps while they measure.

use crate::case::{Burst, Mode, REQUEST, Test};
use crate::channel::{About, Kind, Setup};
use crate::usage::Watched;
use crate::worker::{Answer, Ask, Lead, Outcome, Ready, say};
use crate::{Result, machine};
use ramway_agents::{Agent, Event, Said, measured};
use std::collections::BTreeMap;
use std::io::BufRead;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// What starts each language's agent, as a manifest has it.
pub(crate) type Agents = BTreeMap<String, Vec<PathBuf>>;

/// A row: which language's agent is on each side, and what it says about itself.
struct Row {
    name: &'static str,
    kind: Kind,
    /// None: the following side does everything by itself.
    lead: Option<&'static str>,
    follow: &'static str,
    over: Over,
    what: &'static str,
    can: fn(&Burst) -> bool,
    /// What the language's machine is told in front of its other arguments.
    options: &'static [&'static str],
}

/// What the two sides have open.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Over {
    Rings,
    /// The leading side publishes, the following one subscribes.
    Topic,
    /// The leading side calls a method of the following one's server.
    Calls,
    /// The same with a handler that runs where the server receives.
    InlineCalls,
    /// By calls that are awaited, and a handler that is a coroutine or a task.
    AwaitedCalls,
}

impl Over {
    /// For calls: what the server's agent is told of its handler (`bare=`), and the client's of its kind.
    fn handler(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Calls => Some(("yes", "")),
            Self::InlineCalls => Some(("inline", "")),
            Self::AwaitedCalls => Some(("async", " kind=async")),
            Self::Rings | Self::Topic => None,
        }
    }
}

const fn ring(
    lead: &'static str,
    follow: &'static str,
    name: &'static str,
    what: &'static str,
    can: fn(&Burst) -> bool,
) -> Row {
    Row { name, kind: Kind::Ramway, lead: Some(lead), follow, over: Over::Rings, what, can, options: &[] }
}

/// A topic between the two, to one reliable subscriber.
const fn topic(lead: &'static str, follow: &'static str, name: &'static str, what: &'static str) -> Row {
    Row { over: Over::Topic, ..ring(lead, follow, name, what, streams) }
}

/// The newest message of a publisher in Rust, which has sent one and sends no other.
const fn latest(follow: &'static str, name: &'static str, what: &'static str) -> Row {
    Row { over: Over::Topic, ..ring("rust", follow, name, what, values) }
}

/// Calls of a server of the same language, which replies with what it was sent.
const fn calls(language: &'static str, name: &'static str, what: &'static str) -> Row {
    Row { over: Over::Calls, ..ring(language, language, name, what, asks) }
}

/// The same, of a handler that the server runs where it reads the request.
const fn inline(language: &'static str, name: &'static str, what: &'static str) -> Row {
    Row { over: Over::InlineCalls, ..calls(language, name, what) }
}

/// The same, awaited.
const fn awaits(language: &'static str, name: &'static str, what: &'static str) -> Row {
    Row { over: Over::AwaitedCalls, ..calls(language, name, what) }
}

const ROWS: &[Row] = &[
    ring(
        "python",
        "python",
        "ring-python",
        "two named rings: send and recv, for message in rx; together: send_array, recv_array",
        |burst| trips(burst) || streams(burst) || views(burst),
    ),
    ring(
        "rust",
        "python",
        "ring-rust-python",
        "from a sender in Rust: for message in rx; together: recv_array",
        streams,
    ),
    ring("node", "node", "ring-node", "two named rings: send, recv, for await; polling: sendSync, recvSync", |burst| {
        trips(burst) || streams(burst) || views(burst)
    }),
    ring("node", "node", "ring-into-node", "the same by recvIntoSync: a copy to a buffer of its own", |burst| {
        trips(burst) && burst.mode == Mode::Spin && burst.size <= 64
    }),
    ring(
        "rust",
        "node",
        "ring-rust-node",
        "from a sender in Rust: for await over messages, or over batches by batch.bytes",
        streams,
    ),
    ring(
        "node",
        "rust",
        "ring-node-rust",
        "to a receiver in Rust: trySend, and send where there is no room; sendBatch",
        streams,
    ),
    topic(
        "rust",
        "node",
        "topic-rust-node",
        "from a publisher in Rust, a reliable subscriber: for await over messages, or over batches by batch.bytes",
    ),
    topic(
        "node",
        "rust",
        "topic-node-rust",
        "to a reliable subscriber in Rust: trySend, and send where there is no room; sendBatch",
    ),
    latest("node", "latest-node", "from a publisher in Rust: latest, and its data"),
    ring(
        "java",
        "java",
        "ring-java",
        "two named rings: reserve, commit, recv; together: commitUnflushed, recvBatch",
        |burst| trips(burst) || streams(burst),
    ),
    Row {
        options: &["-Dramway.unguarded=true"],
        ..ring("java", "java", "ring-unguarded-java", "the same with -Dramway.unguarded=true", |burst| {
            trips(burst) || streams(burst)
        })
    },
    ring("rust", "java", "ring-rust-java", "from a sender in Rust: recv; together: recvBatch", streams),
    ring(
        "java",
        "rust",
        "ring-java-rust",
        "to a receiver in Rust: reserve, commit; together: commitUnflushed",
        streams,
    ),
    ring("rust", "kotlin", "ring-rust-kotlin", "from a sender in Rust: messages().collect { }", |burst| {
        streams(burst) && burst.mode != Mode::Batch
    }),
    topic(
        "java",
        "java",
        "topic-java",
        "a topic, a reliable subscriber: reserve, commit, recv; together: commitUnflushed, recvBatch",
    ),
    Row {
        can: |burst| streams(burst) && burst.mode != Mode::Batch,
        ..topic(
            "rust",
            "kotlin",
            "topic-rust-kotlin",
            "from a publisher in Rust, a reliable subscriber: messages().collect { }",
        )
    },
    latest("java", "latest-java", "from a publisher in Rust: latest into memory of its own"),
    latest("kotlin", "latest-kotlin", "from a publisher in Rust: latest into memory of its own"),
    Row {
        name: "flow-kotlin",
        kind: Kind::ByHand,
        lead: None,
        follow: "kotlin",
        over: Over::Rings,
        what: "the same Flow over arrays that are there already: no message at all",
        can: |burst| streams(burst) && burst.mode != Mode::Batch,
        options: &[],
    },
    ring(
        "csharp",
        "csharp",
        "ring-csharp",
        "two named rings: Reserve, Commit, Recv; together: StartBatch, Add, Flush; RecvBatch",
        |burst| trips(burst) || streams(burst),
    ),
    topic(
        "csharp",
        "csharp",
        "topic-csharp",
        "a topic, a reliable subscriber: Reserve, Commit, Recv; together: StartBatch, Add, Flush; RecvBatch",
    ),
    latest("csharp", "latest-csharp", "from a publisher in Rust: TryReadLatest into memory of its own"),
    ring(
        "go",
        "go",
        "ring-go",
        "two named rings: Reserve, Commit, Recv; together: CommitUnflushed, RecvBatch",
        |burst| trips(burst) || streams(burst),
    ),
    topic(
        "go",
        "go",
        "topic-go",
        "a topic, a reliable subscriber: Reserve, Commit, Recv; together: CommitUnflushed, RecvBatch",
    ),
    latest("go", "latest-go", "from a publisher in Rust: Latest, a copy of its own"),
    calls("python", "rpc-python", "client.call; the handler is a function, and server.run() serves"),
    awaits(
        "python",
        "rpc-async-python",
        "await client.call; the handler is a coroutine, and await server.serve() serves",
    ),
    calls("node", "rpc-node", "await client.call, and a handler in the server's event loop"),
    calls("go", "rpc-go", "client.Call, and Handle: a goroutine for each call, as gRPC's handlers have it"),
    inline("go", "rpc-inline-go", "client.Call, and HandleInline: in the goroutine that receives"),
    calls("java", "rpc-java", "client.call, and a handler on a virtual thread"),
    inline("java", "rpc-inline-java", "client.call, and an inlineMethod, which the thread that reads the request runs"),
    calls("csharp", "rpc-csharp", "client.Call, and a handler of the thread pool"),
    inline(
        "csharp",
        "rpc-inline-csharp",
        "client.Call, and an InlineMethod, which the thread that reads the request runs",
    ),
    awaits("csharp", "rpc-async-csharp", "await client.CallAsync, and a handler that is a task"),
];

/// All messages are of one size, and nothing is done with them but reading.
fn plain(burst: &Burst) -> bool {
    burst.smallest == burst.size && burst.size >= 8 && burst.size.is_multiple_of(8) && burst.work_ns == 0
}

fn trips(burst: &Burst) -> bool {
    plain(burst) && burst.test == Test::Rtt
}

fn streams(burst: &Burst) -> bool {
    plain(burst) && burst.test == Test::OneWay
}

/// Of an idle writer: no other agent writes while one reads.
fn values(burst: &Burst) -> bool {
    plain(burst) && burst.test == Test::Latest && burst.threads == 0
}

fn views(burst: &Burst) -> bool {
    plain(burst) && burst.test == Test::View
}

/// How sides wait in a mode, as agents are told.
fn waits(mode: Mode) -> &'static str {
    match mode {
        Mode::Block => "block",
        Mode::Hybrid => "hybrid",
        _ => "spin",
    }
}

/// One call after the other, whose reply is as long as its request.
fn asks(burst: &Burst) -> bool {
    plain(burst) && burst.test == Test::Call && burst.size == REQUEST && burst.batch == 1
}

/// The argument by which this program is told that it leads a row of agents. Whatever else it is told is in the environment.
const ARGUMENT: &str = "agents=";

/// What measures rows of these agents.
pub(crate) fn command(own: Vec<PathBuf>, agents: &Agents) -> Result<Vec<PathBuf>> {
    let agents = format!("{ARGUMENT}{}", serde_json::to_string(agents)?);
    Ok([own, vec![agents.into()]].concat())
}

/// The agents of this process, if it was started by [`command`].
pub(crate) fn of_this_process() -> Option<Agents> {
    let last = std::env::args().next_back()?;
    serde_json::from_str(last.strip_prefix(ARGUMENT)?).ok()
}

/// The rows that these agents can measure; that some agent says nothing of itself is an error.
pub(crate) fn rows(agents: &Agents) -> Result<Vec<About>> {
    let mut rows = Vec::new();
    let mut runtimes = BTreeMap::new();
    let here = |language: &&str| agents.contains_key(*language);
    for row in ROWS.iter().filter(|row| here(&row.follow) && row.lead.as_ref().is_none_or(here)) {
        // What the row is about is the one that is not Rust.
        let language = row.lead.filter(|&lead| lead != "rust").unwrap_or(row.follow);
        if !runtimes.contains_key(language) {
            let mut agent = Agent::start(command_of(agents, language, &[])?, |_| {})?;
            let about = agent.ask("about", "about", Instant::now() + Duration::from_secs(20))?;
            runtimes.insert(language, about.get("text").unwrap_or_default().to_owned());
        }
        // A reply is a copy of its own.
        let copied = row.over.handler().is_some();
        rows.push(About::new(row.name, row.kind, copied, &format!("{}: {}", runtimes[language], row.what)));
    }
    Ok(rows)
}

fn command_of(agents: &Agents, language: &str, options: &[&str]) -> Result<Command> {
    let words = agents.get(language).ok_or_else(|| format!("there is no agent of {language}"))?;
    let [program, arguments @ ..] = words.as_slice() else { return Err("an agent's command is empty".into()) };
    let mut command = Command::new(program);
    command.args(options).args(arguments);
    Ok(command)
}

/// The whole of a leading process of a row of agents.
pub(crate) fn lead(agents: &Agents, order: &Lead) -> Result<()> {
    let answer = |answer: &Answer| say(&serde_json::to_string(answer)?);
    let row = ROWS.iter().find(|row| row.name == order.mechanism);
    let row = row.ok_or_else(|| format!("no mechanism here is called {}", order.mechanism))?;
    if !(row.can)(&order.burst) {
        return answer(&Answer::Cannot(()));
    }
    let mut pair = match Pair::start(agents, row, &order.setup, &order.burst) {
        Ok(pair) => pair,
        Err(cause) => return answer(&Answer::Failed(cause.to_string())),
    };
    answer(&Answer::Ready(Ready { pids: pair.sides().iter().map(|agent| agent.pid()).collect() }))?;
    for line in std::io::stdin().lock().lines() {
        match serde_json::from_str(&line?)? {
            Ask::Burst(burst) => match pair.burst(&burst) {
                Ok(outcome) => answer(&Answer::Outcome(outcome))?,
                Err(cause) => return answer(&Answer::Failed(cause.to_string())),
            },
            Ask::Quit(()) => break,
        }
    }
    pair.sides().into_iter().try_for_each(|agent| agent.finish(deadline()))
}

/// Beyond whatever the run waits for: it ends this process and the agents with it.
fn deadline() -> Instant {
    Instant::now() + Duration::from_secs(3600)
}

struct Pair {
    row: &'static Row,
    lead: Option<Agent>,
    follow: Agent,
}

impl Pair {
    fn start(agents: &Agents, row: &'static Row, setup: &Setup, burst: &Burst) -> Result<Self> {
        let start = |language: &str, cpu| -> Result<Agent> {
            let mut command = command_of(agents, language, row.options)?;
            let realtime = setup.realtime;
            let settle = move || machine::settle_child(cpu, realtime);
            // SAFETY: two system calls, async-signal-safe, no allocation.
            unsafe { command.pre_exec(settle) };
            let mut agent = Agent::start(command, |said| {
                if let Said::Aside(line) = said {
                    eprintln!("{line}");
                }
            })?;
            if realtime {
                agent.ask("lock", "locked", deadline()).map_err(|cause| format!("{language}: {cause}"))?;
            }
            Ok(agent)
        };
        let lead = row.lead.map(|language| start(language, setup.cpus[0])).transpose()?;
        let mut pair = Self { row, lead, follow: start(row.follow, setup.cpus[1])? };
        if let Some(lead) = &mut pair.lead {
            let place = |name| setup.directory.join(name).display().to_string();
            let (there, back) = (place("there"), place("back"));
            if let Some((bare, kind)) = row.over.handler() {
                let (wait, capacity) = (waits(burst.mode), setup.capacity);
                let serve = format!("open rpc={there} role=server bare={bare} capacity={capacity} wait={wait}");
                pair.follow.ask(&serve, "attached", deadline())?;
                lead.ask(&format!("open rpc={there} role=client wait={wait}{kind}"), "attached", deadline())?;
                pair.warm_up(burst)?;
                return Ok(pair);
            }
            let [leads, follows] = match row.over {
                Over::Topic => {
                    let policy = if burst.test == Test::Latest { "latest" } else { "reliable" };
                    [format!("role=producer topic={there}"), format!("role=consumer topic={there} policy={policy}")]
                }
                Over::Rings if row.lead == Some(row.follow) => {
                    [format!("role=both ring={there} back={back}"), format!("role=both ring={back} back={there}")]
                }
                _ => [format!("role=producer ring={there}"), format!("role=consumer ring={there}")],
            };
            // Node.js has no tensors that are worth as much memory at once; a topic's pages are there after the warm-up.
            let few = setup.capacity <= 64 << 20 || row.follow == "python";
            let prefault = if few && row.over == Over::Rings { " prefault=yes" } else { "" };
            let create = format!("open {leads} create=yes capacity={}{prefault}", setup.capacity);
            lead.ask(&create, "attached", deadline())?;
            pair.follow.ask(&format!("open {follows}{prefault}"), "attached", deadline())?;
            if burst.test == Test::Latest {
                // The value that is read from now on.
                lead.ask(&format!("measure do=send size={} count=1 wait=spin", burst.size), "ready", deadline())?;
                lead.ask("go", "measured", deadline())?;
            }
        }
        pair.warm_up(burst)?;
        Ok(pair)
    }

    fn sides(&mut self) -> Vec<&mut Agent> {
        self.lead.iter_mut().chain([&mut self.follow]).collect()
    }

    /// Through the very same loops, in bursts of about the size of those that count: until then code is compiled that the
    /// pair goes through. Nothing where nothing is.
    fn warm_up(&mut self, burst: &Burst) -> Result<()> {
        let compiles = |language| match language {
            "java" | "kotlin" | "csharp" => (1500, 200_000),
            "node" => (600, 0),
            _ => (0, 0),
        };
        let (ms, operations) = compiles(self.row.lead.unwrap_or_default()).max(compiles(self.row.follow));
        let (least, longest) = (Duration::from_millis(ms), Duration::from_secs(10));
        let (began, mut done, mut compiled, mut quiet) = (Instant::now(), 0, 0, Instant::now());
        while ms > 0 && began.elapsed() < longest {
            // As long as a compiler has just worked, it may not be through.
            if began.elapsed() >= least && done >= operations && quiet.elapsed() >= Duration::from_millis(300) {
                break;
            }
            let larger = Burst { count: burst.count * if done < 20_000 { 1 } else { 10 }, ..*burst };
            let halves = self.stretch(&larger)?.1;
            done += larger.count;
            let so_far: u64 = halves.iter().filter_map(|half| half.number::<u64>("compiled_ms").ok()).sum();
            if so_far != compiled {
                (compiled, quiet) = (so_far, Instant::now());
            }
        }
        Ok(())
    }

    /// The command for one half.
    fn measure(&self, half: &str, burst: &Burst) -> String {
        let Burst { size, count, group, mode, .. } = *burst;
        if burst.test == Test::Call {
            return format!("measure do=call size={size} count={count} group={group}");
        }
        let batch = if mode == Mode::Batch { burst.batch } else { 1 };
        let node = self.row.lead == Some("node") || self.row.follow == "node";
        let wait = match mode {
            // A stream comes to an event loop.
            Mode::Each | Mode::Batch if node => "hybrid",
            mode => waits(mode),
        };
        // Node.js has several ways.
        let how = match (self.row.name, half, mode) {
            ("ring-into-node", ..) => " how=into",
            ("ring-rust-node" | "topic-rust-node", "receive", _) => " how=bytes",
            ("ring-node" | "ring-node-rust", "send", Mode::Block) => " how=await",
            _ => "",
        };
        format!("measure do={half} size={size} count={count} batch={batch} group={group} wait={wait}{how}")
    }

    /// Both halves, once: what each used meanwhile, and what it measured, the leading one's first.
    fn stretch(&mut self, burst: &Burst) -> Result<(Vec<Watched>, Vec<Event>)> {
        let halves = match burst.test {
            Test::Rtt => ["ping", "echo"],
            Test::View => ["show", "look"],
            Test::Latest => ["", "latest"],
            // The server serves all the time.
            Test::Call => ["call", ""],
            _ if self.row.lead.is_none() => ["", "flow"],
            _ => ["send", "receive"],
        };
        let [leads, follows] = halves.map(|half| self.measure(half, burst));
        let mut watched = Vec::new();
        // The publisher of the value is idle meanwhile.
        let mut leading = self.lead.as_mut().filter(|_| burst.test != Test::Latest);
        if let Some(lead) = &mut leading {
            lead.ask(&leads, "ready", deadline())?;
            watched.push(Watched::begin(lead.pid()));
        }
        watched.push(Watched::begin(self.follow.pid()));
        let serves = burst.test == Test::Call;
        if !serves {
            self.follow.ask(&follows, "ready", deadline())?;
        }
        let mut events = Vec::new();
        if let Some(lead) = &mut leading {
            events.push(lead.ask("go", "measured", deadline())?);
        }
        if !serves {
            events.push(self.follow.expect("measured", deadline())?);
        }
        let receives = match burst.test {
            Test::Rtt => &events[..],
            Test::View => &[],
            _ => &events[events.len() - 1..],
        };
        let check = if burst.test == Test::Latest { measured::check_latest } else { measured::check };
        receives.iter().try_for_each(|event| check(event, burst.count, burst.size as u64))?;
        Ok((watched, events))
    }

    fn burst(&mut self, burst: &Burst) -> Result<Outcome> {
        let (watched, events) = self.stretch(burst)?;
        let used: Vec<_> = watched.into_iter().map(Watched::end).collect();
        // Of a side that is not there nothing is used.
        let both = |of: fn(&crate::usage::Used) -> u64| match used.as_slice() {
            [lead, follow] => [of(lead), of(follow)],
            _ => [0, used.first().map_or(0, of)],
        };
        let ended = |event: &Event| event.number::<u64>("ended_ns");
        let first = events.first().ok_or("no side measured")?;
        let last = events.iter().map(ended).collect::<ramway_agents::Result<Vec<_>>>()?.into_iter().max();
        let elapsed_ns = last.unwrap_or(0).saturating_sub(first.number("began_ns")?);
        let mut samples_ps = Vec::new();
        let languages = self.row.lead.into_iter().filter(|_| events.len() == 2).chain([self.row.follow]);
        // What Rust's side of another language's row times is not that language's.
        for (event, _) in events.iter().zip(languages).filter(|(_, language)| *language != "rust") {
            samples_ps.extend(event.numbers::<u64>("samples")?.into_iter().map(|ns| ns * 1000));
        }
        let allocated: Vec<u64> = events.iter().map(|event| event.number("allocated").unwrap_or(0)).collect();
        let heap = events.iter().any(|event| event.get("allocated").is_some());
        Ok(Outcome {
            elapsed_ps: elapsed_ns * 1000,
            operations: burst.count,
            samples_ps,
            cpu_ns: both(|used| used.cpu_ns),
            peak_rss: both(|used| used.peak_rss),
            shared: both(|used| used.shared),
            context_switches: both(|used| used.context_switches),
            allocations: None,
            allocated_bytes: heap.then(|| match allocated.as_slice() {
                [lead, follow] => [*lead, *follow],
                _ => [0, allocated.iter().sum()],
            }),
            parts: Vec::new(),
            ratios: Vec::new(),
        })
    }
}
