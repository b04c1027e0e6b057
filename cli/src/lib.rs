//! What the programs of this repository share at the command line: exit codes and errors, standard input and output, Ctrl-C,
//! sizes and durations, and how a program begins and ends.
//!
//! For the commands `ramway` and `ramway-bench`; not a stable API.

pub mod color;
pub mod failure;
pub mod interrupt;
pub mod output;
pub mod program;
pub mod standard;
pub mod units;
