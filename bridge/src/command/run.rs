//! From the start to the end of a bridge.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use ramway_cli::failure::{ERROR, Failure, Outcome, TAKEN};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::Source;
use crate::config::Config;
use crate::metrics::Server;
use crate::registry::{Label, Registry};
use crate::report::Rules;
use crate::{bridge, log};

/// How often `--verbose` says how the rules stand.
const SAY_EVERY: Duration = Duration::from_secs(1);

/// What the command line says beside the configuration.
pub(super) struct Options {
    pub(super) metrics: Option<SocketAddr>,
    pub(super) verbose: bool,
}

enum Event {
    Signal(libc::c_int),
    Over(Result<(), String>),
}

/// Runs until a signal asks for the end, or the bridge cannot go on.
pub(super) fn run(config: Config, source: &Source, options: &Options) -> Outcome {
    let registry = Arc::new(Registry::default());
    let metrics = options.metrics.map(|address| serve(address, &registry)).transpose()?;
    let (events, happened) = mpsc::channel();
    signals(events.clone())?;
    let mut shown = options.verbose.then(Rules::verbose);
    if let Some(server) = &metrics {
        log::say(&format!("metrics are at http://{}/metrics", server.address()));
    }
    let stop = Arc::new(AtomicBool::new(false));
    let counters = config.rules.iter().map(|rule| registry.of(Label::new(rule))).collect();
    let of_thread = Arc::clone(&stop);
    let work = thread::Builder::new()
        .name("bridge".into())
        .spawn(move || {
            let over = bridge::run(config, counters, of_thread);
            // Nobody listens where the program ends already.
            let _ = events.send(Event::Over(over));
        })
        .map_err(|error| Failure::io(&error, "no thread for the bridge"))?;
    let outcome = loop {
        match happened.recv_timeout(SAY_EVERY) {
            Ok(Event::Signal(SIGHUP)) => again(source),
            Ok(Event::Signal(_)) => {
                log::say("asked to end; a second signal ends at once");
                // Relaxed: nothing is read by it but that it is time to end.
                stop.store(true, Ordering::Relaxed);
            }
            Ok(Event::Over(outcome)) => break outcome,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break Err("the bridge has ended without saying why".into()),
        }
        if let Some(rules) = &mut shown {
            rules.update(&registry);
        }
    };
    // It has sent its last word.
    let _ = work.join();
    outcome.map_err(|text| Failure::new(ERROR, text))
}

fn serve(address: SocketAddr, registry: &Arc<Registry>) -> Outcome<Server> {
    Server::start(address, Arc::clone(registry)).map_err(|error| {
        let text = format!("metrics cannot be served on {address}: {error}; give another address to --metrics");
        let code = if error.kind() == std::io::ErrorKind::AddrInUse { TAKEN } else { ERROR };
        Failure::new(code, text)
    })
}

/// Sends every signal on. The second one that asks for the end ends the program at once.
fn signals(events: mpsc::Sender<Event>) -> Outcome {
    let failed = |error: std::io::Error| Failure::io(&error, "cannot watch for signals");
    for number in [SIGINT, SIGTERM] {
        let seen = Arc::new(AtomicBool::new(false));
        // In this order: the first signal finds `seen` false.
        signal_hook::flag::register_conditional_shutdown(number, 128 + number, Arc::clone(&seen)).map_err(failed)?;
        signal_hook::flag::register(number, seen).map_err(failed)?;
    }
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM]).map_err(failed)?;
    let watch = move || {
        for number in signals.forever() {
            if events.send(Event::Signal(number)).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("signals".into()).spawn(watch).map_err(failed)?;
    Ok(())
}

fn again(_: &Source) {}
