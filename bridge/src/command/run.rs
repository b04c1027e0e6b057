//! From the start to the end of a bridge.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use ramway_cli::failure::{Failure, Outcome, TAKEN, ERROR};
use crate::config::Config;
use super::Source;
pub(super) struct Options {
    pub(super) metrics: Option<SocketAddr>,
    pub(super) verbose: bool,
    pub(super) drain: Duration,
}
pub(super) fn run(config: &Config, source: &Source, options: &Options) -> Outcome { Ok(()) }
