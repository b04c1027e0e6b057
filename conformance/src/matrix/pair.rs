//! Two languages, which way they are connected, and the flags that follow from it.

use crate::languages::{Language, Result};
use crate::run::{Event, Program, Scene};

/// How two programs are connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// A named ring.
    Ring,
    /// A bus; the producer's side listens if it creates.
    Bus,
}

impl Over {
    /// As reports spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ring => "ring",
            Self::Bus => "bus",
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
        }
    }

    fn flags(&self, plan: &Plan, creates: bool) -> String {
        let Plan { capacity, align, wait, .. } = plan;
        match (self.over, creates) {
            (Over::Ring, true) => format!("--wait {wait} --ring r --create yes --capacity {capacity} --align {align}"),
            (Over::Ring, false) => format!("--wait {wait} --ring r"),
            (Over::Bus, true) => format!("--wait {wait} --listen b --capacity {capacity} --align {align}"),
            (Over::Bus, false) => format!("--wait {wait} --connect b"),
        }
    }

    /// The producer's side of what is not open yet.
    pub fn produce(&self, scene: &Scene, plan: &Plan, command: &str) -> Result<Program> {
        let flags = self.flags(plan, plan.producer_creates);
        scene.start(self.producer, "producer", &format!("{command} {flags}"))
    }

    /// The consumer's side of what is not open yet.
    pub fn consume(&self, scene: &Scene, plan: &Plan, command: &str) -> Result<Program> {
        let flags = self.flags(plan, !plan.producer_creates);
        scene.start(self.consumer, "consumer", &format!("{command} {flags}"))
    }

    /// Both sides, either first, and both attached.
    pub fn both(&self, scene: &Scene, plan: &Plan, producer: &str, consumer: &str) -> Result<(Program, Program)> {
        let (mut first, mut second);
        if (self.variant / 2).is_multiple_of(2) {
            first = self.produce(scene, plan, producer)?;
            second = self.consume(scene, plan, consumer)?;
        } else {
            second = self.consume(scene, plan, consumer)?;
            first = self.produce(scene, plan, producer)?;
        }
        for program in [&mut first, &mut second] {
            attached(program, plan)?;
        }
        Ok((first, second))
    }

    /// A successor of the producer on the ring that is there.
    pub fn next_producer(&self, scene: &Scene, plan: &Plan, command: &str) -> Result<Program> {
        let mut program =
            scene.start(self.producer, "next producer", &format!("{command} {}", self.flags(plan, false)))?;
        attached(&mut program, plan)?;
        Ok(program)
    }

    /// A successor of the consumer on the ring that is there.
    pub fn next_consumer(&self, scene: &Scene, plan: &Plan, command: &str) -> Result<Program> {
        let mut program =
            scene.start(self.consumer, "next consumer", &format!("{command} {}", self.flags(plan, false)))?;
        attached(&mut program, plan)?;
        Ok(program)
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
