//! Measures Ramway against what it is built on and what it replaces: two processes for each candidate, every candidate in
//! every round, the receiver reading every byte. `README.md` beside this crate says what each row is.
//!
//! A program that measures must call [`child_main_builtin`] first in its `main`: the measuring processes are the same
//! executable.
//!
//! ```no_run
//! fn main() -> Result<(), ramway_bench::Failure> {
//!     if let Some(code) = ramway_bench::child_main_builtin() {
//!         std::process::exit(code);
//!     }
//!     let report = ramway_bench::run(&ramway_bench::Options::quick(), &mut |_| {})?;
//!     println!("{}", serde_json::to_string_pretty(&report)?);
//!     Ok(())
//! }
//! ```
//!
//! A program that measures another mechanism implements [`Mechanism`], and [`Channel`] if messages are carried (else
//! [`End`]), and calls [`child_main`]; [`worker`] says what it is told and what it answers.

#[cfg(feature = "command")]
mod agents;
mod area;
mod bars;
mod case;
mod catalogue;
mod channel;
pub mod clock;
mod compare;
mod control;
mod demo;
pub mod fan;
mod loops;
mod machine;
mod mechanism;
mod one;
mod only;
pub mod page;
mod pair;
mod place;
mod placement;
mod plan;
pub mod pools;
mod programs;
mod report;
mod resume;
mod rounds;
mod run;
#[cfg(test)]
mod sample;
mod stats;
mod syscalls;
#[cfg(test)]
mod tests;
mod text;
mod usage;
pub mod worker;

pub use case::{Burst, Mode, REQUEST, Test};
pub use catalogue::{Available, Catalogue, Listed, catalogue};
pub use channel::{About, Channel, End, Finish, Kind, Mechanism, Prepared, Setup, fill, sum, sum_of, verify};
pub use compare::{Change, Comparison, LEAST, compare, read_report};
pub use control::Control;
pub use demo::{Demo, DemoRow, demo_table};
pub use loops::RoundTrips;
pub use machine::{Machine, Pinned};
pub use mechanism::Bystander;
pub use one::{One, Single, run_one};
pub use plan::Plan;
pub use report::{
    Apart, Bar, Both, Distance, Figures, Group, Percentiles, Placements, Report, Row, SCHEMA, Seen, Settings,
};
pub use run::{Options, Placement, Progress, run};
pub use text::text;
pub use usage::CountingAllocator;
pub use worker::{Outcome, child_main};

/// [`child_main`] with everything that this crate can measure.
pub fn child_main_builtin() -> Option<i32> {
    child_main(mechanism::ALL)
}

/// What went wrong, in words.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

pub(crate) type Result<T> = std::result::Result<T, Failure>;
