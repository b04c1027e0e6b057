//! Two languages, which way they are connected, and how either side opens that.

use ramway_agents::{Event, Language, Result};

use crate::run::{Program, Scene};

/// How two programs are connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// A named ring.
    Ring,
    /// A bus; the producer's side listens if it creates.
    Bus,
    /// An RPC's bus: the producer serves, the consumer calls.
    Rpc,
    /// The same, with the consumer's second client, the one for tasks.
    RpcAsync,
}

impl Over {
    /// As reports spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ring => "ring",
            Self::Bus => "bus",
            Self::Rpc => "rpc",
            Self::RpcAsync => "rpc-async",
        }
    }

    /// Whether these two languages can be connected so.
    pub fn has(self, producer: &Language, consumer: &Language) -> bool {
        match self {
            Self::Ring | Self::Bus => true,
            Self::Rpc => producer.rpc && consumer.rpc,
            Self::RpcAsync => producer.rpc && consumer.rpc && consumer.async_client,
        }
    }
}

/// One scenario between two languages.
pub struct Pair<'a> {
    pub producer: &'a Language,
    pub consumer: &'a Language,
    pub over: Over,
    /// Which of the variants that are spread over the pairs this one takes: waits, ways to send, alignments, ….
    pub variant: usize,
    /// How many messages make a long stream.
    pub messages: u64,
    /// Whether other pairs play a share of the scenarios (`--spread`).
    pub spread: bool,
    /// Whether both programs are new, are told names, and end with the scenario. Those of other scenarios are told paths, and go on
    /// in the next one of the pair: a JVM takes longer to start than most of them.
    pub fresh: bool,
    pub random: fastrand::Rng,
}

/// What is created, how it is waited, who does it.
#[derive(Clone, Copy)]
pub struct Plan {
    pub capacity: u64,
    pub align: u64,
    pub wait: &'static str,
    /// Whether the producer creates the ring, or listens. The consumer does otherwise.
    pub producer_creates: bool,
    /// Whether both send and receive.
    pub talk: bool,
}

impl Pair<'_> {
    /// One of several, by the variant.
    pub fn pick<T: Copy>(&self, of: &[T]) -> T {
        of[self.variant % of.len()]
    }

    /// What most scenarios do: 64 KiB, one of the waits, created by either.
    pub fn plan(&self) -> Plan {
        Plan {
            capacity: 65536,
            align: 16,
            wait: self.pick(&["hybrid", "block"]),
            producer_creates: self.variant.is_multiple_of(2),
            talk: false,
        }
    }

    /// What opens one side: a ring `r`, with one for the other direction `back` where it is a conversation, or a bus `b`.
    fn opening(&self, scene: &Scene, plan: &Plan, producer: bool, creates: bool) -> String {
        let Plan { capacity, align, wait, talk, .. } = plan;
        let role = match (producer, talk) {
            (_, true) => "both",
            (true, false) => "producer",
            (false, false) => "consumer",
        };
        let place = |name: &str| scene.name(name, self.fresh);
        let place = match (self.over, talk, creates) {
            (Over::Bus, _, true) => format!("listen={}", place("b")),
            (Over::Bus, _, false) => format!("connect={}", place("b")),
            (Over::Ring, false, _) => format!("ring={}", place("r")),
            (Over::Ring, true, _) if producer => format!("ring={} back={}", place("r"), place("back")),
            (Over::Ring, true, _) => format!("ring={} back={}", place("back"), place("r")),
            (Over::Rpc | Over::RpcAsync, ..) => unreachable!("a server and a client are opened otherwise"),
        };
        let made = match (self.over, creates) {
            (_, false) | (Over::Rpc | Over::RpcAsync, true) => String::new(),
            (Over::Ring, true) => format!(" create=yes capacity={capacity} align={align}"),
            (Over::Bus, true) => format!(" capacity={capacity} align={align}"),
        };
        format!("open role={role} wait={wait} {place}{made}")
    }

    fn start(&self, scene: &Scene, plan: &Plan, producer: bool, creates: bool, label: &str) -> Result<Program> {
        let language = if producer { self.producer } else { self.consumer };
        let mut program = scene.agent(language, label, self.fresh)?;
        program.tell(&self.opening(scene, plan, producer, creates))?;
        Ok(program)
    }

    fn next(&self, scene: &Scene, plan: &Plan, producer: bool, label: &str) -> Result<Program> {
        let language = if producer { self.producer } else { self.consumer };
        let mut program = scene.successor(language, label, self.fresh)?;
        program.tell(&self.opening(scene, plan, producer, false))?;
        attached(&mut program, plan)?;
        Ok(program)
    }

    /// The producer's side of what is not open yet.
    pub fn produce(&self, scene: &Scene, plan: &Plan) -> Result<Program> {
        self.start(scene, plan, true, plan.producer_creates, "producer")
    }

    /// Both sides, either first, and both attached.
    pub fn both(&self, scene: &Scene, plan: &Plan) -> Result<(Program, Program)> {
        let open = |producer: bool| -> Result<(Program, bool)> {
            let creates = producer == plan.producer_creates;
            let (language, label) = if producer { (self.producer, "producer") } else { (self.consumer, "consumer") };
            let mut program = self.start(scene, plan, producer, creates, label)?;
            // One that starts slowly has made its ring before the other one looks for it.
            let made = language.starts_slowly && creates && self.over == Over::Ring;
            if made {
                attached(&mut program, plan)?;
            }
            Ok((program, made))
        };
        let slow = (self.producer.starts_slowly, self.consumer.starts_slowly);
        let producer_first = if slow.0 == slow.1 { (self.variant / 2).is_multiple_of(2) } else { slow.0 };
        let ((mut first, first_made), (mut second, second_made)) = if producer_first {
            let first = open(true)?;
            (first, open(false)?)
        } else {
            let second = open(false)?;
            (open(true)?, second)
        };
        for (program, made) in [(&mut first, first_made), (&mut second, second_made)] {
            if !made {
                attached(program, plan)?;
            }
        }
        Ok((first, second))
    }

    /// Both sides, attached and at work.
    pub fn play(&self, scene: &Scene, plan: &Plan, producer: &str, consumer: &str) -> Result<(Program, Program)> {
        let (mut first, mut second) = self.both(scene, plan)?;
        first.tell(producer)?;
        second.tell(consumer)?;
        Ok((first, second))
    }

    /// A successor of the producer on the ring that is there.
    pub fn next_producer(&self, scene: &Scene, plan: &Plan) -> Result<Program> {
        self.next(scene, plan, true, "next producer")
    }

    /// A successor of the consumer on the ring that is there.
    pub fn next_consumer(&self, scene: &Scene, plan: &Plan) -> Result<Program> {
        self.next(scene, plan, false, "next consumer")
    }
}

/// Waits for `attached` and checks what it says about the ring.
pub fn attached(program: &mut Program, plan: &Plan) -> Result<Event> {
    let event = program.expect("attached")?;
    event.expect(&format!("pid={} capacity={} max={}", program.pid(), plan.capacity, plan.capacity - 16))?;
    Ok(event)
}

/// Checks that a call took as long as it was told to wait. Longer is no mistake of a language on a busy machine, but
/// seconds are.
pub fn waited(event: &Event, ms: u64) -> Result<()> {
    let took: u64 = event.number("elapsed_ms")?;
    if (ms..ms + 5000).contains(&took) {
        return Ok(());
    }
    Err(format!("a call with a time-out of {ms} ms took {took} ms").into())
}

/// The number after the last message of the ring, where a successor of its producer goes on.
pub fn after_last(producer: &mut Program) -> Result<u64> {
    let last = producer.ask("last", "last")?;
    Ok(if last.get("none").is_some() { 0 } else { (last.number::<u64>("tag")? & 0xFFFF_FFFF) + 1 })
}
