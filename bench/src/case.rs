//! What one burst is: the words that the plan, both processes and the report share.

use serde::{Deserialize, Serialize};

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Test {
    /// A message there and its echo back; the next one goes when the echo is there.
    Rtt,
    /// A stream of messages, filled by one side and read by the other.
    OneWay,
    /// From just before the wake-up call to the sleeper running.
    Wake,
    /// Messages at fixed times, `gap_ns` apart: from the time a message was due to the receiver having read it.
    Paced,
    /// `batch` messages at once every `gap_ns`: from the time the burst was due to the receiver having read a message.
    Bursty,
    /// Round trips after random pauses of up to `gap_ns`: what is long is a lost wake-up.
    Pauses,
    /// Processor time of a receiver that waits.
    Idle,
    /// From asking for a message that is there to having it as an array with a shape and a type, in a language that
    /// has such arrays.
    View,
    /// `size` bytes of memory, read word by word from the first to the last.
    SequentialRead,
    /// The same, written.
    SequentialWrite,
    /// One word of each 4 KiB of `size` bytes, in an order that no prefetcher foresees.
    RandomRead,
    /// In each of `threads` threads of one process: a buffer of `size` bytes is got and given back, untouched.
    PoolGet,
    /// The same from two pools in turn.
    PoolAlternate,
    /// Each of `threads` threads has `batch` buffers of up to `size` bytes, long ones rare, and replaces one after the other.
    PoolMixed,
    /// Got by one thread and given back by another, up to [`PIPELINE`](crate::pools::PIPELINE) on their way.
    PoolPipeline,
    /// As `pool-mixed` by one thread, a random one replaced: the memory that is held over what is in use.
    PoolHeld,
    /// A stream to `threads` readers at once, each of which reads every byte.
    Readers,
    /// A stream to subscribers that are there and read nothing: what a publish costs.
    Publish,
    /// A stream at full speed past a reader that the writer does not wait for: what the reader got and what it says that it
    /// lost make what was sent, and no message is torn.
    Lapped,
    /// The newest value, read as fast as one can while another process writes one every `gap_ns`; 0: without a pause. With
    /// `threads` 0 nothing is written.
    Latest,
    /// From just before the one call that wakes `threads` sleepers to the last of them running.
    WakeAll,
    /// A stream from `threads` producers at once to one reader, which reads every byte.
    Producers,
    /// A request of [`REQUEST`] bytes there and a reply of `size` bytes back, up to `batch` of them under way.
    Call,
}

/// Bytes of a request of [`Test::Call`].
pub const REQUEST: usize = 32;

/// How the sides wait (`rtt`, `wake`, `paced`, …) or publish (`one-way`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Mode {
    /// Polling, never asleep.
    Spin,
    /// Asleep at once.
    Block,
    /// Polling for a while, then asleep: what a user gets by default.
    Hybrid,
    /// Every message is published by itself, and released by itself. Sides that can poll do.
    Each,
    /// Several messages are published together, and all that has arrived is released together. Sides that can poll do.
    Batch,
}

/// How much to do at a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Burst {
    /// What is timed.
    pub test: Test,
    /// How the sides wait or publish.
    pub mode: Mode,
    /// Bytes of a message, the largest if they differ; a multiple of 8; 0 where nothing but a signal is carried.
    pub size: usize,
    /// Bytes of the smallest message; `size` unless they differ.
    pub smallest: usize,
    /// Messages, round trips, wake-ups or passes.
    pub count: u64,
    /// Operations that one sample stands for: the counter of some machines ticks every 10 ns only.
    pub group: u32,
    /// Messages that are published together, or buffers that a thread has at a time; 1 unless the mode is `batch` or the test
    /// `bursty`, `pool-mixed` or `pool-held`.
    pub batch: u32,
    /// Threads that do it at once (`pool-get`, `pool-alternate`, `pool-mixed`), that read (`readers`, `wake-all`) or that write
    /// (`latest`, `producers`); 1 elsewhere, where it is not said.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub threads: u32,
    /// Nanoseconds between two messages (`paced`), values (`latest`), bursts (`bursty`), or at most between round trips (`pauses`).
    pub gap_ns: u64,
    /// Nanoseconds that the receiver works on each message, by looking at the clock.
    pub work_ns: u64,
}

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_one(threads: &u32) -> bool {
    *threads == 1
}

impl Burst {
    /// One of each by default: no gap, no work, nothing together.
    pub fn new(test: Test, mode: Mode, size: usize, count: u64) -> Self {
        Self { test, mode, size, smallest: size, count, group: 1, batch: 1, threads: 1, gap_ns: 0, work_ns: 0 }
    }

    /// Bytes of message `n`: both sides know.
    #[inline(always)]
    pub fn size_of(&self, n: u64) -> usize {
        if self.smallest == self.size {
            return self.size;
        }
        // Multiplicative hashing: the high bits are as good as random.
        let random = (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as usize;
        self.smallest + random % ((self.size - self.smallest) / 8 + 1) * 8
    }
}

impl Test {
    /// As the report spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rtt => "rtt",
            Self::OneWay => "one-way",
            Self::Wake => "wake",
            Self::Paced => "paced",
            Self::Bursty => "bursty",
            Self::Pauses => "pauses",
            Self::Idle => "idle",
            Self::View => "view",
            Self::SequentialRead => "sequential-read",
            Self::SequentialWrite => "sequential-write",
            Self::RandomRead => "random-read",
            Self::PoolGet => "pool-get",
            Self::PoolAlternate => "pool-alternate",
            Self::PoolMixed => "pool-mixed",
            Self::PoolPipeline => "pool-pipeline",
            Self::PoolHeld => "pool-held",
            Self::Readers => "readers",
            Self::Publish => "publish",
            Self::Lapped => "lapped",
            Self::Latest => "latest",
            Self::WakeAll => "wake-all",
            Self::Producers => "producers",
            Self::Call => "call",
        }
    }

    /// Whether buffers are got and given back, in one process.
    pub fn is_pool(self) -> bool {
        matches!(self, Self::PoolGet | Self::PoolAlternate | Self::PoolMixed | Self::PoolPipeline | Self::PoolHeld)
    }

    /// Whether one side writes for several readers, or for one that it does not wait for, or several write for one.
    pub fn is_fan(self) -> bool {
        matches!(self, Self::Readers | Self::Publish | Self::Lapped | Self::Latest | Self::WakeAll | Self::Producers)
    }

    /// Whether memory is gone through, in one process.
    pub fn is_access(self) -> bool {
        matches!(self, Self::SequentialRead | Self::SequentialWrite | Self::RandomRead)
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
