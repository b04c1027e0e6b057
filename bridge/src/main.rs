//! The program `ramway-bridge`.

use ramway_bridge::config::Config;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else { return ExitCode::from(2) };
    let config = match Config::read(Path::new(&path)) {
        Ok(config) => config,
        Err(problems) => {
            eprintln!("{problems}");
            return ExitCode::from(2);
        }
    };
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [libc::SIGINT, libc::SIGTERM] {
        signal_hook::flag::register(signal, stop.clone()).expect("a signal that can be handled");
    }
    let counters = config.rules.iter().map(|_| Arc::default()).collect();
    match ramway_bridge::bridge::run(config, counters, stop) {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("ramway-bridge: {text}");
            ExitCode::FAILURE
        }
    }
}
