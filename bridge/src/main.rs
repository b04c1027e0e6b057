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
    let registry = Arc::new(ramway_bridge::registry::Registry::default());
    match ramway_bridge::bridge::Bridge::start(&config, registry) {
        Ok(bridge) => {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            bridge.drain(std::time::Duration::from_secs(1));
            ExitCode::SUCCESS
        }
        Err(text) => {
            eprintln!("ramway-bridge: {text}");
            ExitCode::FAILURE
        }
    }
}
