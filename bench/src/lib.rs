//! Measures Ramway against what it is built on and what it replaces: two pinned processes, every candidate in every
//! round of one run, the receiver reading every byte. `README.md` beside this crate says what each row is.
//!
//! A program that measures must call [`child_main`] first in its `main`: the second process is the same executable.
//!
//! ```no_run
//! fn main() -> Result<(), ramway_bench::Failure> {
//!     if let Some(code) = ramway_bench::child_main() {
//!         std::process::exit(code);
//!     }
//!     let report = ramway_bench::run(&ramway_bench::Options::quick(), &mut |_| {})?;
//!     println!("{}", serde_json::to_string_pretty(&report)?);
//!     Ok(())
//! }
//! ```

mod area;
mod channel;
mod clock;
mod control;
mod demo;
mod machine;
mod mechanism;
mod pair;
mod plan;
mod report;
mod run;
mod stats;
#[cfg(test)]
mod tests;

pub use demo::{Demo, DemoRow, demo_table};
pub use machine::Machine;
pub use pair::child_main;
pub use plan::{Mode, Test};
pub use report::{Bar, Report, Row};
pub use run::{Options, Progress, run};

/// What went wrong, in words.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

pub(crate) type Result<T> = std::result::Result<T, Failure>;
