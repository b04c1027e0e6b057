//! Finished groups in a file, so that an interrupted run goes on where it was.

use crate::Result;
use crate::machine::Machine;
use crate::report::{Group, Row, SCHEMA};
use crate::run::Options;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// What the file holds.
#[derive(Serialize, Deserialize)]
struct State {
    schema: u32,
    began: u64,
    /// What was chosen, by name: all of it must be the same.
    chosen: BTreeMap<String, String>,
    /// As it was at the beginning.
    machine: Machine,
    seconds: f64,
    finished: Vec<Finished>,
}

#[derive(Clone, Serialize, Deserialize)]
struct Finished {
    group: Group,
    rows: Vec<Row>,
}

/// A run that may have been begun before.
pub(crate) struct Resume {
    path: Option<PathBuf>,
    state: State,
}

impl Resume {
    /// A new run, or the one that the options' file holds.
    pub(crate) fn open(options: &Options, machine: Machine) -> Result<Self> {
        let path = options.state.clone();
        let chosen = chosen(options);
        if let Some(path) = &path
            && let Some(state) = read(path)?
        {
            if let Some(difference) = difference(&state, &chosen, &machine) {
                let text = "another run's state: remove the file, or choose the same as before";
                return Err(format!("{}: {text} ({difference})", path.display()).into());
            }
            return Ok(Self { path: Some(path.clone()), state });
        }
        let began = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let state = State { schema: SCHEMA, began, chosen, machine, seconds: 0.0, finished: Vec::new() };
        Ok(Self { path, state })
    }

    /// When it began, in seconds since 1970.
    pub(crate) fn began(&self) -> u64 {
        self.state.began
    }

    pub(crate) fn machine(&self) -> &Machine {
        &self.state.machine
    }

    /// How long it has taken.
    pub(crate) fn seconds(&self) -> f64 {
        self.state.seconds
    }

    /// A group that is finished.
    pub(crate) fn finished(&self, id: &str) -> Option<(Group, Vec<Row>)> {
        let found = self.state.finished.iter().find(|finished| finished.group.id == id)?;
        Some((found.group.clone(), found.rows.clone()))
    }

    /// Keeps a group.
    pub(crate) fn add(&mut self, group: &Group, rows: &[Row], seconds: f64) -> Result<()> {
        self.state.seconds += seconds;
        self.state.finished.push(Finished { group: group.clone(), rows: rows.to_vec() });
        match &self.path {
            Some(path) => write(path, &self.state).map_err(|cause| format!("{}: {cause}", path.display()).into()),
            None => Ok(()),
        }
    }

    /// The run is complete: nothing is left to go on with.
    pub(crate) fn close(self) -> Result<()> {
        match &self.path {
            Some(path) if !self.state.finished.is_empty() => Ok(fs::remove_file(path)?),
            _ => Ok(()),
        }
    }
}

fn chosen(options: &Options) -> BTreeMap<String, String> {
    let settings = options.settings();
    let processor = |cpu: Option<usize>| cpu.map_or("any".to_owned(), |cpu| cpu.to_string());
    let all = [
        ("plan", settings.plan),
        ("processors", settings.cpus.map(processor).join(",")),
        ("both orders", options.both_orders.to_string()),
        ("real time", settings.realtime.to_string()),
        ("rows", settings.only.join(", ")),
        ("time for a group", options.group_time.map_or("the plan's".to_owned(), |time| format!("{time:?}"))),
        ("rounds", options.rounds.map_or("as many as fit".to_owned(), |rounds| rounds.to_string())),
        ("directory of peers", options.peers.as_ref().map_or(String::new(), |peers| peers.display().to_string())),
    ];
    all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The first thing that is not as it was.
fn difference(state: &State, chosen: &BTreeMap<String, String>, machine: &Machine) -> Option<String> {
    let differs = |name: &str, was: &str, now: &str| (was != now).then(|| format!("{name} was {was:?}, not {now:?}"));
    if let Some(difference) = differs("the format", &state.schema.to_string(), &SCHEMA.to_string()) {
        return Some(difference);
    }
    for (name, now) in chosen {
        let was = state.chosen.get(name).map_or("", String::as_str);
        if let Some(difference) = differs(name, was, now) {
            return Some(difference);
        }
    }
    let was = &state.machine;
    let same = [
        ("the processor", &was.cpu, &machine.cpu),
        ("the kernel", &was.kernel, &machine.kernel),
        ("Ramway's version", &was.ramway, &machine.ramway),
    ];
    let named = same.into_iter().find_map(|(name, was, now)| differs(name, was, now));
    // The load is another one at any time.
    let other = Machine { load: was.load, ..machine.clone() } != *was;
    named.or_else(|| other.then(|| "the machine is another".to_owned()))
}

fn read(path: &Path) -> Result<Option<State>> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(cause) if cause.kind() == ErrorKind::NotFound => return Ok(None),
        Err(cause) => return Err(format!("{}: {cause}", path.display()).into()),
    };
    let state = serde_json::from_slice(&text);
    state.map(Some).map_err(|cause| format!("{}: no state of a run: {cause}", path.display()).into())
}

/// All of it or nothing: what was there stays until the new file is complete.
fn write(path: &Path, state: &State) -> Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let new = PathBuf::from(name);
    let mut file = fs::File::create(&new)?;
    file.write_all(&serde_json::to_vec(state)?)?;
    file.sync_all()?;
    Ok(fs::rename(&new, path)?)
}
