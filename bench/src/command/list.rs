//! `ramway bench --list`.

use std::fmt::Write;

use ramway_bench::{Kind, Plan};

use super::Suite;
use ramway_cli::failure::{Failure, Outcome};
use ramway_cli::output;

/// Says what there is.
pub fn run(suite: &Suite) -> Outcome {
    let catalogue = ramway_bench::catalogue(suite.peers.as_deref());
    let catalogue = catalogue.map_err(|error| Failure::error(format!("cannot list: {error}")))?;
    if suite.json.is_some() {
        return output::json(&catalogue);
    }
    let mut groups = output::table(&["group", "run", "what"]);
    for group in &catalogue.groups {
        let run = match group.plan {
            Plan::Quick => "--quick",
            Plan::Standard => "",
            _ => "--full",
        };
        groups.add_row([group.id.as_str(), run, group.title.as_str()]);
    }
    let mut mechanisms = output::table(&["mechanism", "kind", "what"]);
    let mut missing = false;
    for one in &catalogue.mechanisms {
        let kind = match one.about.kind {
            Kind::Kernel => "kernel",
            Kind::ByHand => "by hand",
            Kind::Ramway => "Ramway",
            _ => "peer",
        };
        let mut what = one.about.what.clone();
        if !one.about.version.is_empty() {
            write!(what, " {}", one.about.version).map_err(|error| Failure::error(error.to_string()))?;
        }
        if let Some(why) = &one.missing {
            missing = true;
            what = format!("missing: {}", why.lines().next().unwrap_or_default());
        }
        mechanisms.add_row([one.about.name.as_str(), kind, what.as_str()]);
    }
    let mut text = output::render(&groups);
    text.push('\n');
    text.push_str(&output::render(&mechanisms));
    if missing {
        text.push_str(
            "\nPeers that are missing are installed and built by `make bench-peers` in Ramway's source;\n\
             --peers DIR says where they are if not in bench-peers beside the command's directory.\n",
        );
    }
    output::print(&text)
}
