//! The programs that measure: this one, and those that manifests name.

use crate::case::Burst;
use crate::channel::{About, Kind};
use crate::worker::{Order, VARIABLE};
use crate::{Result, mechanism};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What `NAME.json` in the directory of peers holds: `make bench-peers` writes one for each, whether it could be built
/// or not.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// Of the mechanism.
    pub(crate) name: String,
    /// Of the library.
    pub(crate) version: String,
    /// One line.
    pub(crate) what: String,
    /// The program and its arguments.
    pub(crate) command: Option<Vec<PathBuf>>,
    /// Why there is no command.
    pub(crate) failure: Option<String>,
    /// In place of a command: what starts the agent of each language that takes part.
    #[serde(default)]
    pub(crate) agents: BTreeMap<String, Vec<PathBuf>>,
}

/// A mechanism, and who can measure it.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) about: About,
    /// Program and arguments; or why there is no program.
    pub(crate) command: std::result::Result<Vec<PathBuf>, String>,
    /// Whether it is one of this crate's own, so that it can be asked what it can without a process.
    pub(crate) builtin: bool,
}

impl Known {
    /// Whether a process of it need be asked.
    pub(crate) fn can(&self, burst: &Burst) -> bool {
        !self.builtin || mechanism::find(&self.about.name).is_some_and(|mechanism| mechanism.can(burst))
    }
}

/// How long a program may take to say what it can.
const LIST: Duration = Duration::from_secs(20);

/// Everything that can be measured here.
pub(crate) fn all(peers: Option<&Path>) -> Result<Vec<Known>> {
    let own = own_command()?;
    let builtin = mechanism::ALL.iter().map(|mechanism| mechanism.about());
    let mut all: Vec<_> = builtin.map(|about| Known { about, command: Ok(own.clone()), builtin: true }).collect();
    let directory = match peers {
        Some(chosen) if !chosen.is_dir() => return Err(format!("no directory {}", chosen.display()).into()),
        Some(chosen) => chosen.to_owned(),
        None => default_directory()?,
    };
    let mut files: Vec<_> = fs::read_dir(directory).into_iter().flatten().flatten().map(|file| file.path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    for file in files {
        let text = fs::read_to_string(&file)?;
        let manifest: Manifest = serde_json::from_str(&text).map_err(|cause| format!("{}: {cause}", file.display()))?;
        for known in of(manifest) {
            // A name is a row: the first one has it.
            if !all.iter().any(|other| other.about.name == known.about.name) {
                all.push(known);
            }
        }
    }
    Ok(all)
}

/// What a manifest's program says of itself; if it says nothing, that is the row.
fn of(manifest: Manifest) -> Vec<Known> {
    let about = About::new(&manifest.name, Kind::Peer, true, &manifest.what).version(&manifest.version);
    #[cfg(feature = "command")]
    if manifest.failure.is_none() && !manifest.agents.is_empty() {
        let listed = own_command().and_then(|own| {
            let command = crate::agents::command(own, &manifest.agents)?;
            Ok((command, crate::agents::rows(&manifest.agents)?))
        });
        return known(about, listed.map_err(|cause| cause.to_string()));
    }
    let listed = match (manifest.command, manifest.failure) {
        (Some(command), None) => list(&command).map(|abouts| (command, abouts)),
        (_, failure) => Err(failure.unwrap_or_else(|| "was not built".into())),
    };
    known(about, listed)
}

type Listed = std::result::Result<(Vec<PathBuf>, Vec<About>), String>;

fn known(about: About, listed: Listed) -> Vec<Known> {
    match listed {
        Ok((command, abouts)) => {
            let known = |about| Known { about, command: Ok(command.clone()), builtin: false };
            abouts.into_iter().map(known).collect()
        }
        Err(why) => vec![Known { about, command: Err(why), builtin: false }],
    }
}

fn list(command: &[PathBuf]) -> std::result::Result<Vec<About>, String> {
    let [program, arguments @ ..] = command else { return Err("its command is empty".into()) };
    let order = serde_json::to_string(&Order::List(())).map_err(|cause| cause.to_string())?;
    let mut child = Command::new(program)
        .args(arguments)
        .env(VARIABLE, order)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|cause| format!("{}: {cause}", program.display()))?;
    let began = Instant::now();
    // A list is shorter than what a pipe holds.
    while child.try_wait().map_err(|cause| cause.to_string())?.is_none() {
        if began.elapsed() > LIST {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("{} did not say what it measures", program.display()));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let output = child.wait_with_output().map_err(|cause| cause.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().rev().find(|line| line.starts_with('['));
    let line = line.ok_or_else(|| format!("{} ended with {} and no list", program.display(), output.status))?;
    serde_json::from_str(line).map_err(|cause| format!("{}: {cause}", program.display()))
}

/// RAMWAY_BENCH_PEERS, or `bench-peers` beside the directory that this program is in.
fn default_directory() -> Result<PathBuf> {
    if let Some(chosen) = std::env::var_os("RAMWAY_BENCH_PEERS") {
        return Ok(chosen.into());
    }
    let program = std::env::current_exe()?;
    // An example is one directory deeper.
    let near = program.ancestors().skip(2).take(2).map(|place| place.join("bench-peers"));
    Ok(near.into_iter().find(|place| place.is_dir()).unwrap_or_default())
}

/// This program, which has called `child_main_builtin` first.
pub(crate) fn own_command() -> Result<Vec<PathBuf>> {
    #[allow(unused_mut)]
    let mut command = vec![std::env::current_exe()?];
    #[cfg(test)]
    command.extend(crate::tests::WORKER.map(PathBuf::from));
    Ok(command)
}
