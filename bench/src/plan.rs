//! What is measured: every row of the report, and how much of it makes one burst.

use crate::channel::Burst;
use serde::{Deserialize, Serialize};

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Test {
    /// A message there and its echo back.
    Rtt,
    /// A stream of messages, filled by one side and read by the other: time per message.
    OneWay,
    /// From just before the wake-up call to the sleeper running.
    Wake,
    /// Processor time of a receiver that waits. Not a row: see [`Bar`](crate::Bar).
    Idle,
}

/// How the sides wait (`rtt`, `wake`) or publish (`one_way`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Mode {
    /// Polling, never asleep.
    Spin,
    /// Asleep at once.
    Block,
    /// Polling for a while, then asleep: what a user gets by default.
    Hybrid,
    /// Every message is published by itself, and released by itself.
    Each,
    /// Several messages are published together, and what is there is released together.
    Batch,
}

/// A row to be.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Case {
    pub(crate) mechanism: String,
    /// Whether the payload is copied on its way from where the sender wrote it to where the receiver reads it.
    pub(crate) copied: bool,
    /// Bytes of buffering between the two sides.
    pub(crate) capacity: u64,
    pub(crate) burst: Burst,
}

impl Case {
    /// `mechanism/test/size/mode`, for filters and progress.
    pub(crate) fn label(&self) -> String {
        let copied = if self.copied { "/copied" } else { "" };
        format!("{}/{}/{}/{}{copied}", self.mechanism, self.burst.test.name(), self.burst.size, self.burst.mode.name())
    }
}

impl Test {
    /// As the report spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rtt => "rtt",
            Self::OneWay => "one_way",
            Self::Wake => "wake",
            Self::Idle => "idle",
        }
    }
}

impl Mode {
    /// As the report spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Spin => "spin",
            Self::Block => "block",
            Self::Hybrid => "hybrid",
            Self::Each => "each",
            Self::Batch => "batch",
        }
    }
}

/// Room for 8 messages of the largest size, so that all of it stays in a cache.
const LARGE: u64 = 8 << 20;
const SMALL: u64 = 1 << 20;

/// The one-way sizes.
pub(crate) const SIZES: [usize; 5] = [32, 256, 1024, 64 << 10, 1 << 20];

fn capacity_for(size: usize) -> u64 {
    if size > 1024 { LARGE } else { SMALL }
}

fn case(mechanism: &str, copied: bool, test: Test, size: usize, mode: Mode) -> Case {
    let in_kernel = matches!(mechanism, "pipe" | "uds");
    let count = match test {
        // A round trip without sleep is 0.1 to 0.4 µs, with sleep 10 to 100 µs.
        Test::Rtt if mode == Mode::Spin => 1000,
        Test::Rtt | Test::Wake => 20,
        Test::OneWay if in_kernel => (8 << 20) / (size as u32 + 4096),
        Test::OneWay => ((8 << 20) / (size as u32 + 256)).clamp(16, 20_000),
        Test::Idle => 1,
    };
    let batch = match mode {
        // 32, but no more than a quarter of the ring: else the batch is cut by a full ring.
        Mode::Batch => (capacity_for(size) / 4 / (size as u64 + 16)).clamp(1, 32) as u32,
        _ => 1,
    };
    let group = if test == Test::Rtt && mode == Mode::Spin { 10 } else { 1 };
    let burst = Burst { test, mode, size, count, group, batch };
    Case { mechanism: mechanism.to_owned(), copied, capacity: capacity_for(size), burst }
}

/// Everything that the report holds.
pub(crate) fn all() -> Vec<Case> {
    use Mode::{Batch, Block, Each, Hybrid, Spin};
    use Test::{OneWay, Rtt, Wake};
    let mut cases = vec![case("raw-flag", false, Rtt, 8, Spin)];
    for mode in [Spin, Hybrid, Block] {
        cases.push(case("ring", false, Rtt, 32, mode));
        cases.push(case("bus", false, Rtt, 32, mode));
    }
    cases.push(case("futex", false, Rtt, 0, Block));
    cases.push(case("region", false, Rtt, 0, Block));
    cases.push(case("pipe", true, Rtt, 32, Block));
    cases.push(case("uds", true, Rtt, 32, Block));

    cases.push(case("futex", false, Wake, 0, Block));
    cases.push(case("region", false, Wake, 0, Block));
    for (mechanism, copied) in [("ring", false), ("bus", false), ("pipe", true), ("uds", true)] {
        cases.push(case(mechanism, copied, Wake, 32, Block));
    }

    cases.push(case("seq-cst", false, OneWay, 32, Each));
    for size in SIZES {
        for mode in [Each, Batch] {
            cases.push(case("ring", false, OneWay, size, mode));
            cases.push(case("bus", false, OneWay, size, mode));
        }
        cases.push(case("ring", true, OneWay, size, Each));
        for mechanism in ["pipe", "uds"] {
            cases.push(case(mechanism, true, OneWay, size, Each));
            if size <= 1024 {
                cases.push(case(mechanism, true, OneWay, size, Batch));
            }
        }
        if size > 1024 {
            cases.push(case("pointer", false, OneWay, size, Each));
            cases.push(case("memcpy", true, OneWay, size, Each));
        }
    }
    cases
}

/// What `make demo` shows.
pub(crate) fn demo() -> Vec<Case> {
    use Mode::{Batch, Block, Each, Spin};
    use Test::{OneWay, Rtt};
    let mut cases = Vec::new();
    for (mechanism, copied, mode) in [("bus", false, Spin), ("uds", true, Block), ("pipe", true, Block)] {
        cases.push(case(mechanism, copied, Rtt, 32, mode));
        cases.push(case(mechanism, copied, OneWay, 32, Each));
        cases.push(case(mechanism, copied, OneWay, 32, Batch));
        cases.push(case(mechanism, copied, OneWay, 64 << 10, Each));
    }
    cases
}

/// A receiver that waits by the default policy.
pub(crate) fn idle() -> Case {
    case("ring", false, Test::Idle, 32, Mode::Hybrid)
}
