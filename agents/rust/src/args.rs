//! The flags, the same for every command.

use std::time::Duration;

use clap::{Parser, ValueEnum};

use ramway::WaitPolicy;

/// Rust's program of the conformance kit: `conformance/README.md` says what each command and flag means.
#[derive(Parser)]
pub(crate) struct Args {
    pub(crate) command: Command,
    #[arg(long)]
    pub(crate) ring: Option<String>,
    #[arg(long)]
    pub(crate) back: Option<String>,
    #[arg(long)]
    pub(crate) listen: Option<String>,
    #[arg(long)]
    pub(crate) connect: Option<String>,
    #[arg(long)]
    pub(crate) region: Option<String>,
    #[arg(long, value_parser = yes, default_value = "no")]
    pub(crate) create: Yes,
    #[arg(long, default_value_t = 65536)]
    pub(crate) capacity: u64,
    #[arg(long, default_value_t = 16)]
    pub(crate) align: u32,
    #[arg(long, value_enum, default_value = "hybrid")]
    pub(crate) wait: Wait,
    #[arg(long, default_value_t = 20_000)]
    pub(crate) timeout: u64,
    #[arg(long)]
    pub(crate) cpu: Option<usize>,
    #[arg(long, default_value = "mixed")]
    pub(crate) sizes: Sizes,
    #[arg(long)]
    pub(crate) size: Option<u64>,
    #[arg(long)]
    pub(crate) start: Option<u64>,
    #[arg(long)]
    pub(crate) count: Option<u64>,
    #[arg(long)]
    pub(crate) until: Option<u64>,
    #[arg(long, value_parser = yes, default_value = "no")]
    pub(crate) resume: Yes,
    #[arg(long)]
    pub(crate) batch: Option<u64>,
    #[arg(long, value_enum)]
    pub(crate) how: Option<How>,
    #[arg(long, default_value_t = 1)]
    pub(crate) endings: u64,
    #[arg(long, value_parser = yes, default_value = "no")]
    pub(crate) progress: Yes,
    #[arg(long)]
    pub(crate) linger: Option<u64>,
    #[arg(long, value_parser = yes, default_value = "no")]
    pub(crate) oversize: Yes,
    #[arg(long, default_value_t = 0)]
    pub(crate) pace: u64,
    #[arg(long)]
    pub(crate) poll: Option<u64>,
    #[arg(long, default_value_t = 0)]
    pub(crate) work: u64,
    #[arg(long, default_value_t = 1)]
    pub(crate) group: u64,
    #[arg(long, value_parser = yes, default_value = "yes")]
    pub(crate) check: Yes,
    #[arg(long, value_enum)]
    pub(crate) role: Option<Role>,
    #[arg(long, value_parser = yes, default_value = "no")]
    pub(crate) pause: Yes,
    #[arg(long, value_parser = ["unix"])]
    pub(crate) over: Option<String>,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub(crate) enum Command {
    Produce,
    Consume,
    Echo,
    Ping,
    Die,
    Read,
    Show,
    Flood,
    Drain,
    Tensors,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Wait {
    Spin,
    Block,
    Hybrid,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub(crate) enum How {
    Send,
    Reserve,
    Try,
    Recv,
    Batch,
    Into,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub(crate) enum Role {
    Producer,
    Consumer,
}

/// How long message number `seq` is.
#[derive(Clone, Copy)]
pub(crate) enum Sizes {
    Fixed(u64),
    Ramp,
    Mixed,
}

impl std::str::FromStr for Sizes {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "mixed" => Ok(Self::Mixed),
            "ramp" => Ok(Self::Ramp),
            number => number.parse().map(Self::Fixed),
        }
    }
}

/// A flag that is said as `--flag yes`.
pub(crate) type Yes = bool;

fn yes(text: &str) -> Result<Yes, String> {
    match text {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("yes or no".to_owned()),
    }
}

impl Args {
    /// The longest single wait; `None` is without a limit.
    pub(crate) fn limit(&self) -> Option<Duration> {
        (self.timeout > 0).then_some(Duration::from_millis(self.timeout))
    }

    /// The time-out of one call: with `--poll` that, else the longest single wait.
    pub(crate) fn call_limit(&self) -> Option<Duration> {
        self.poll.map(Duration::from_micros).or_else(|| self.limit())
    }

    pub(crate) fn policy(&self) -> WaitPolicy {
        match self.wait {
            Wait::Spin => WaitPolicy::Spin,
            Wait::Block => WaitPolicy::Block,
            Wait::Hybrid => WaitPolicy::Hybrid,
        }
    }
}
