//! What can be measured: the list that a user chooses from.

use crate::Result;
use crate::channel::{About, Kind};
use crate::only::Only;
use crate::plan::{self, Plan};
use crate::programs;
use serde::Serialize;
use std::path::Path;

/// Groups, and the mechanisms that they compare.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Catalogue {
    /// In the order in which they are measured.
    pub groups: Vec<Listed>,
    /// What is built in first.
    pub mechanisms: Vec<Available>,
}

/// A group that a run may hold.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Listed {
    /// As in the report.
    pub id: String,
    /// For people.
    pub title: String,
    /// The smallest plan that holds it.
    pub plan: Plan,
    /// Who takes part if it can.
    pub candidates: Vec<String>,
}

/// A mechanism, and whether it can be measured here.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Available {
    /// What it is.
    pub about: About,
    /// Why it cannot be measured; `None` if it can.
    pub missing: Option<String>,
}

/// Everything, with the peers of `peers` (see [`Options`](crate::Options)).
///
/// # Errors
/// The directory is not there, or a manifest in it cannot be read.
pub fn catalogue(peers: Option<&Path>) -> Result<Catalogue> {
    let mut groups: Vec<Listed> = Vec::new();
    for plan in [Plan::Full, Plan::Standard, Plan::Quick] {
        for planned in plan::groups(plan) {
            match groups.iter_mut().find(|known| known.id == planned.group.id) {
                Some(known) => known.plan = plan,
                None => {
                    let candidates = planned.candidates.into_iter().map(|candidate| candidate.mechanism).collect();
                    groups.push(Listed { id: planned.group.id, title: planned.group.title, plan, candidates });
                }
            }
        }
    }
    let known = programs::all(peers)?.into_iter();
    let mut mechanisms: Vec<Available> =
        known.map(|known| Available { about: known.about, missing: known.command.err() }).collect();
    let elsewhere = [
        plan::PEERS,
        plan::FANS,
        plan::CALLERS,
        plan::IN_LANGUAGES,
        plan::PYTHON,
        plan::PYTHON_OTHERS,
        plan::PYTHON_FANS,
        plan::NODE,
        plan::JVM,
        plan::CSHARP,
        plan::GO,
        plan::POOLS,
    ];
    for name in elsewhere.into_iter().flat_map(str::split_whitespace) {
        if mechanisms.iter().all(|known| known.about.name != name) {
            let among = |names: &str| names.split_whitespace().any(|one| one == name);
            let what = if name.ends_with("-python") {
                "between Python processes"
            } else if among(plan::NODE) {
                "between Node.js processes"
            } else if among(plan::JVM) {
                "between Java processes"
            } else if among(plan::CSHARP) {
                "between C# processes"
            } else if among(plan::GO) {
                "between Go processes"
            } else if among(plan::IN_LANGUAGES) {
                "calls between processes of this language"
            } else if among(plan::POOLS) {
                "another library's pool of buffers"
            } else {
                "another library"
            };
            let about = About::new(name, Kind::Peer, true, what);
            mechanisms.push(Available { about, missing: Some("not built (make bench-peers)".into()) });
        }
    }
    Ok(Catalogue { groups, mechanisms })
}

impl Catalogue {
    /// The ids of all rows that there may be, each with the smallest plan that holds it.
    pub fn rows(&self) -> impl Iterator<Item = (String, Plan)> {
        let of = |group: &Listed| {
            let (id, plan) = (group.id.clone(), group.plan);
            group.candidates.clone().into_iter().map(move |name| (format!("{id}/{name}"), plan))
        };
        self.groups.iter().flat_map(of)
    }

    /// Those of them that `text` means in [`Options::only`](crate::Options::only).
    pub fn meant(&self, text: &str) -> Vec<(String, Plan)> {
        let texts = [text.to_owned()];
        let only = Only::new(&texts);
        let means = |id: &str| id.split_once('/').is_some_and(|(group, mechanism)| only.means(group, mechanism));
        self.rows().filter(|(id, _)| means(id)).collect()
    }
}
