//! The bridge at work: what is exported is found in the Ramway directory, what is imported comes from the link.

use crate::config::{Config, Direction, Kind, OnDisconnect, Rule, names};
use crate::counters::Counters;
use crate::far_end::{Came, Import};
use crate::link::{Inlet, Link};
use crate::log;
use crate::near_end::{Export, Over};
use crate::place;
use crate::ring::{RingSink, RingSource};
use crate::wire;
use ramway::ErrorKind;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How often the Ramway directory is looked through for segments that are new.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// What is wrong with a rule that the configuration allows and that this version cannot follow. It is refused, never ignored.
///
/// # Errors
/// What is not there yet, and which rule asks for it.
pub fn supported(rule: &Rule) -> Result<(), String> {
    match rule.kind {
        Kind::Ring { .. } => Ok(()),
        _ => Err(format!(
            "{} is for kind \"{}\", which this version of the bridge does not carry; expected kind \"ring\"",
            rule.shown(),
            rule.kind.word()
        )),
    }
}

/// What all threads of a bridge share.
struct Shared {
    config: Config,
    counters: Vec<Arc<Counters>>,
    link: Link,
    machine: u64,
    run: u64,
    stop: Arc<AtomicBool>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Exports that run, by kind and name.
    exported: Mutex<HashSet<(&'static str, String)>>,
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Carries what the rules say until `stop` is set. `counters` has one for each rule.
///
/// # Errors
/// If a rule is not [`supported`], the link cannot be opened or the Ramway directory cannot be used.
pub fn run(config: Config, counters: Vec<Arc<Counters>>, stop: Arc<AtomicBool>) -> Result<(), String> {
    for rule in &config.rules {
        supported(rule)?;
    }
    let directory = ramway::survey::directory();
    std::fs::create_dir_all(&directory)
        .map_err(|e| format!("making the Ramway directory {}: {e}", directory.display()))?;
    let machine =
        place::machine().map_err(|e| format!("writing the number of this machine into {}: {e}", directory.display()))?;
    let link = Link::open(&config.link).map_err(|e| e.to_string())?;
    let shared = Arc::new(Shared {
        config,
        counters,
        link,
        machine,
        run: place::random(),
        stop,
        threads: Mutex::default(),
        exported: Mutex::default(),
    });
    let inlets = imports(&shared).map_err(|e| e.to_string())?;
    log::say(&format!("machine {machine:016x} is up with {} rules", shared.config.rules.len()));
    let exports = shared.config.rules.iter().any(|rule| rule.direction == Direction::Export);
    // Relaxed here and everywhere: nothing is read by it but that it is time to end.
    while !shared.stop.load(Ordering::Relaxed) {
        if exports {
            look(&shared, &directory);
        }
        locked(&shared.threads).retain(|thread| !thread.is_finished());
        thread::sleep(LOOK_EVERY);
    }
    drop(inlets);
    for thread in std::mem::take(&mut *locked(&shared.threads)) {
        // A thread that panicked has said so.
        let _ = thread.join();
    }
    shared.link.close();
    Ok(())
}

/// Begins with what is exported and not carried yet.
fn look(shared: &Arc<Shared>, directory: &std::path::Path) {
    let found = match ramway::survey::ls(directory) {
        Ok(found) => found,
        Err(e) => return log::say(&e.to_string()),
    };
    for listed in found {
        let (Ok(name), Ok(segment)) = (listed.name.into_string(), listed.segment) else { continue };
        let Ok(rules) = names::exports(&shared.config.rules, &name, segment.kind) else { continue };
        for rule in rules {
            let kind = rule.kind.word();
            let key = (kind, name.clone());
            if locked(&shared.exported).contains(&key) || place::is_imported(kind, &name, &segment) {
                continue;
            }
            let source = match RingSource::open(&name) {
                Ok(source) => source,
                // Somebody here receives, or it is gone again.
                Err(e) if matches!(e.kind(), ErrorKind::Busy | ErrorKind::NotFound) => continue,
                Err(e) => {
                    log::say(&format!("export of the {kind} '{name}': {e}"));
                    continue;
                }
            };
            // Now that it is held, it is surely this one.
            let Ok(segment) = ramway::survey::inspect(&name) else { continue };
            locked(&shared.exported).insert(key.clone());
            let export = Export {
                link: shared.link.clone(),
                base: wire::base(&shared.config.link.prefix, &rule.prefix),
                kind,
                name: name.clone(),
                machine: shared.machine,
                stream: place::identity(&segment),
                window: rule.window,
                chunk: rule.chunk,
                on_disconnect: rule.kind.on_disconnect().unwrap_or(OnDisconnect::Block),
                counters: shared.counters_of(rule),
                stop: shared.stop.clone(),
            };
            let of_thread = shared.clone();
            let run = move || {
                carry(&export, source);
                locked(&of_thread.exported).remove(&key);
            };
            shared.spawn(format!("export {name}"), run);
        }
    }
}

/// Carries one segment until it is gone or the bridge ends.
fn carry(export: &Export, mut source: Box<dyn crate::local::Source>) {
    let say = |text: &str| log::say(&format!("export of the {} '{}': {text}", export.kind, export.name));
    loop {
        match export.run(source) {
            Over::Stopped | Over::Finished => return,
            Over::Failed(text) => {
                say(&text);
                // Whatever it was, it is not tried again at once.
                thread::sleep(Duration::from_secs(1));
                return;
            }
            Over::LetGo(_) => match export.wait_for_far() {
                Ok(true) => {}
                Ok(false) => return,
                Err(e) => return say(&e.to_string()),
            },
        }
        source = match RingSource::open(&export.name) {
            Ok(source) => source,
            // It is found again when there is something to be found.
            Err(_) => return,
        };
        if ramway::survey::inspect(&export.name).map_or(0, |segment| place::identity(&segment)) != export.stream {
            return;
        }
    }
}

/// Begins to take in what the import rules name.
fn imports(shared: &Arc<Shared>) -> Result<Vec<Inlet>, crate::link::LinkError> {
    let mut inlets = Vec::new();
    let mut seen = HashSet::new();
    for rule in shared.config.rules.iter().filter(|rule| rule.direction == Direction::Import) {
        let kind = rule.kind.word();
        if !seen.insert((kind, rule.prefix.clone())) {
            continue;
        }
        let base = wire::base(&shared.config.link.prefix, &rule.prefix);
        let streams: Arc<Mutex<HashMap<String, mpsc::Sender<Came>>>> = Arc::default();
        let hellos = {
            let (shared, base, prefix) = (shared.clone(), base.clone(), rule.prefix.clone());
            let streams = streams.clone();
            move |arrived: crate::link::Arrived<'_>| {
                let Some(name) = wire::name_in(arrived.key, &base, kind) else { return };
                let Some(hello) = wire::decode_hello(&arrived.payload().bytes()) else { return };
                // Of another process on this machine.
                if hello.near == shared.machine {
                    return;
                }
                let Ok(rule) = names::import(&shared.config.rules, name, kind, &prefix) else { return };
                let mut streams = locked(&streams);
                let stream = streams.entry(name.to_owned()).or_insert_with(|| import(&shared, rule, &base, name));
                if let Err(mpsc::SendError(came)) = stream.send(Came::Hello(hello)) {
                    // Its thread is over; the next one begins anew.
                    let fresh = import(&shared, rule, &base, name);
                    // It was made just now.
                    let _ = fresh.send(came);
                    *stream = fresh;
                }
            }
        };
        inlets.push(shared.link.inlet(wire::key(&base, kind, "*", "hello"), hellos)?);
        let data = {
            let base = base.clone();
            move |arrived: crate::link::Arrived<'_>| {
                let Some(name) = wire::name_in(arrived.key, &base, kind) else { return };
                if let Some(stream) = locked(&streams).get(name) {
                    // It fails only where the thread is over; the near end asks again.
                    let _ = stream.send(Came::Data(arrived.payload()));
                }
            }
        };
        inlets.push(shared.link.inlet(wire::key(&base, kind, "*", &format!("to/{:016x}", shared.machine)), data)?);
    }
    Ok(inlets)
}

/// Begins with one name that is imported.
fn import(shared: &Arc<Shared>, rule: &Rule, base: &str, name: &str) -> mpsc::Sender<Came> {
    let (to, came) = mpsc::channel();
    let capacity = rule.kind.capacity();
    let of_thread = name.to_owned();
    let import = Import {
        link: shared.link.clone(),
        base: base.to_owned(),
        kind: rule.kind.word(),
        name: name.to_owned(),
        machine: shared.machine,
        run: shared.run,
        window: rule.window,
        open: Box::new(move |align| RingSink::open(&of_thread, capacity, align)),
        counters: shared.counters_of(rule),
        stop: shared.stop.clone(),
    };
    shared.spawn(format!("import {name}"), move || import.run(came));
    to
}

impl Shared {
    fn counters_of(&self, rule: &Rule) -> Arc<Counters> {
        let place = self.config.rules.iter().position(|known| std::ptr::eq(known, rule)).unwrap_or(0);
        self.counters[place].clone()
    }

    fn spawn(&self, name: String, run: impl FnOnce() + Send + 'static) {
        match thread::Builder::new().name(name.chars().take(15).collect()).spawn(run) {
            Ok(thread) => locked(&self.threads).push(thread),
            Err(e) => log::say(&format!("{name}: no thread for it: {e}")),
        }
    }
}
