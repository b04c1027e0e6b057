//! From the start to the end of a bridge.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use ramway_cli::failure::{ERROR, Failure, Outcome, TAKEN};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::Source;
use crate::bridge::Bridge;
use crate::config::Config;
use crate::log;
use crate::metrics::Server;
use crate::registry::Registry;
use crate::report::Streams;

/// How often `--verbose` says how the streams stand.
const SAY_EVERY: Duration = Duration::from_secs(1);

/// What the command line says beside the configuration.
pub(super) struct Options {
    pub(super) metrics: Option<SocketAddr>,
    pub(super) verbose: bool,
    pub(super) drain: Duration,
}

/// Runs until a signal asks for the end.
pub(super) fn run(config: Config, source: &Source, options: &Options) -> Outcome {
    let registry = Arc::new(Registry::default());
    let signals = signals()?;
    let metrics = options.metrics.map(|address| serve(address, &registry)).transpose()?;
    let mut shown = options.verbose.then(Streams::verbose);
    if let Some(server) = &metrics {
        log::say(&format!("metrics are at http://{}/metrics", server.address()));
    }
    let mut bridge = Bridge::start(&config, Arc::clone(&registry)).map_err(|text| Failure::new(ERROR, text))?;
    let mut config = config;
    loop {
        match signals.recv_timeout(SAY_EVERY) {
            Ok(SIGHUP) => again(&mut bridge, &mut config, source),
            Err(RecvTimeoutError::Timeout) => {}
            Ok(_) | Err(RecvTimeoutError::Disconnected) => break,
        }
        if let Some(streams) = &mut shown {
            streams.update(&registry);
        }
    }
    log::say("asked to end; a second signal ends at once");
    bridge.drain(options.drain);
    if let Some(streams) = &mut shown {
        streams.update(&registry);
    }
    Ok(())
}

/// Follows the file as it is now, or says why not.
fn again(bridge: &mut Bridge, config: &mut Config, source: &Source) {
    let unchanged = "the rules are as they were";
    let found = match source.read() {
        Ok(found) => found,
        Err(problems) => return log::say(&format!("{unchanged}, because the file is wrong:\n{problems}")),
    };
    if found.link != config.link || found.metrics != config.metrics {
        return log::say(&format!("{unchanged}, because [link] or [metrics] has changed, which needs a new start"));
    }
    match bridge.apply(found.rules.clone()) {
        Ok(()) => {
            let new = found.rules.iter().filter(|rule| !config.rules.contains(rule)).count();
            let gone = config.rules.iter().filter(|rule| !found.rules.contains(rule)).count();
            log::say(&format!(
                "the file was read again: {} rules, {new} of them new; {gone} are gone",
                found.rules.len()
            ));
            *config = found;
        }
        Err(text) => log::say(&format!("{unchanged}: {text}")),
    }
}

fn serve(address: SocketAddr, registry: &Arc<Registry>) -> Outcome<Server> {
    Server::start(address, Arc::clone(registry)).map_err(|error| {
        let text = format!("metrics cannot be served on {address}: {error}; give another address to --metrics");
        let code = if error.kind() == std::io::ErrorKind::AddrInUse { TAKEN } else { ERROR };
        Failure::new(code, text)
    })
}

/// The signals as they come. The second one that asks for the end ends the program at once.
fn signals() -> Outcome<mpsc::Receiver<libc::c_int>> {
    let failed = |error: std::io::Error| Failure::io(&error, "cannot watch for signals");
    for number in [SIGINT, SIGTERM] {
        let seen = Arc::new(AtomicBool::new(false));
        // In this order: the first signal finds `seen` false.
        signal_hook::flag::register_conditional_shutdown(number, 128 + number, Arc::clone(&seen)).map_err(failed)?;
        signal_hook::flag::register(number, seen).map_err(failed)?;
    }
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM]).map_err(failed)?;
    let (to, came) = mpsc::channel();
    let watch = move || {
        for number in signals.forever() {
            if to.send(number).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("signals".into()).spawn(watch).map_err(failed)?;
    Ok(came)
}
