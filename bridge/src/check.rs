//! `--check`: what would be bridged now, and why the rest would not.

use std::path::Path;

use ramway::layout;
use ramway::survey::{self, Listed};
use ramway_cli::failure::Outcome;
use ramway_cli::output;

use crate::config::{Config, Delivery, Direction, Kind, Mode, OnDisconnect, Rule, Session, names};
use crate::wire;

/// Prints it.
///
/// # Errors
/// If the directory cannot be read, or standard output not written.
pub fn run(config: &Config) -> Outcome {
    let directory = survey::directory();
    let found = survey::ls(&directory)?;
    output::print(&text(config, &directory, &found))
}

fn text(config: &Config, directory: &Path, found: &[Listed]) -> String {
    let mut text = link(config);
    text.push('\n');
    if found.is_empty() {
        text.push_str(&format!("nothing is in {} yet\n", directory.display()));
    } else {
        let mut table = output::table(&["name", "kind", "bridged", "by"]);
        for listed in found {
            for row in rows(config, listed) {
                table.add_row(row);
            }
        }
        text.push_str(&output::render(&table));
    }
    text.push('\n');
    for rule in &config.rules {
        text.push_str(&format!("{}\n", describe(rule, &config.link.prefix)));
        if rule.direction == Direction::Export && !found.iter().any(|listed| is_exported_by(config, listed, rule)) {
            text.push_str("    nothing here falls under it yet; what appears later does\n");
        }
    }
    text.push_str("What no rule names stays on this machine.\n");
    text
}

/// How the others are reached.
fn link(config: &Config) -> String {
    let Session::Here { mode, listen, connect, discovery, tls } = &config.link.session else {
        let Session::File(path) = &config.link.session else { unreachable!("a session is one of two") };
        return format!("link: as {} says; keys begin with {}\n", path.display(), config.link.prefix);
    };
    let mut words = vec![match mode {
        Mode::Peer => "link: a peer".to_owned(),
        Mode::Client => "link: a client".to_owned(),
    }];
    if !listen.is_empty() {
        words.push(format!("listens on {}", listen.join(" ")));
    }
    if !connect.is_empty() {
        words.push(format!("connects to {}", connect.join(" ")));
    }
    if *discovery {
        words.push("looks for peers by multicast".into());
    }
    words.push(
        match tls {
            Some(tls) if tls.mutual => "both sides show certificates",
            Some(_) => "only the listening side shows a certificate",
            None => "neither encrypted nor authenticated: for a network that you trust",
        }
        .into(),
    );
    words.push(format!("keys begin with {}", config.link.prefix));
    words.join("; ") + "\n"
}

/// A segment's line, or one for each rule that exports it.
fn rows(config: &Config, listed: &Listed) -> Vec<Vec<String>> {
    let shown = output::printable(&listed.name.to_string_lossy());
    let not = |kind: &str, why: String| vec![vec![shown.clone(), kind.to_owned(), "no".to_owned(), why]];
    let segment = match &listed.segment {
        Ok(segment) => segment,
        Err(error) => return not("-", error.to_string()),
    };
    let kind = segment.kind.name();
    let Some(name) = listed.name.to_str().filter(|name| wire::is_name(name)) else {
        return not(kind, "a key cannot have this name: only letters, digits, `.`, `_` and `-`".into());
    };
    if segment.of_another_boot {
        return not(kind, "it was made before the machine started anew: nobody can use it".into());
    }
    let why_not = match names::exports(&config.rules, name, segment.kind) {
        Ok(rules) => {
            let row = |rule: &Rule| {
                let by = format!("{}, as {}", rule.shown(), key(config, rule, name));
                vec![shown.clone(), kind.to_owned(), "exported".to_owned(), by]
            };
            return rules.into_iter().map(row).collect();
        }
        Err(why) => why,
    };
    // A segment that an import has made stands here like any other.
    let imported = config
        .rules
        .iter()
        .find(|rule| rule.direction == Direction::Import && rule.covers(name) && rule.kind.segment() == segment.kind);
    match (imported, &why_not) {
        (Some(rule), names::Why::Direction { .. }) => {
            let by = if segment.producer_held {
                format!("{}, once {} has no other {}", rule.shown(), key(config, rule, name), producer(segment.kind))
            } else {
                format!("{}, from {}", rule.shown(), key(config, rule, name))
            };
            vec![vec![shown, kind.to_owned(), "imported".to_owned(), by]]
        }
        _ => not(kind, why_not.to_string()),
    }
}

fn producer(kind: layout::Kind) -> &'static str {
    match kind {
        layout::Kind::Topic => "publisher",
        layout::Kind::Listener => "listener",
        _ => "sender",
    }
}

fn is_exported_by(config: &Config, listed: &Listed, rule: &Rule) -> bool {
    let (Ok(segment), Some(name)) = (&listed.segment, listed.name.to_str()) else { return false };
    names::exports(&config.rules, name, segment.kind).is_ok_and(|rules| rules.contains(&rule))
}

fn key(config: &Config, rule: &Rule, name: &str) -> String {
    format!("{}/{}/{name}", wire::base(&config.link.prefix, &rule.prefix), rule.kind.word())
}

/// A rule in words.
fn describe(rule: &Rule, prefix: &str) -> String {
    let list = |globs: &[crate::config::Glob]| globs.iter().map(|glob| glob.as_str()).collect::<Vec<_>>().join(", ");
    let mut text = format!("{}: {}s {} {}", rule.shown(), rule.direction.word(), rule.kind.word(), list(&rule.names));
    if !rule.except.is_empty() {
        text.push_str(&format!(" without {}", list(&rule.except)));
    }
    let way = match rule.direction {
        Direction::Export => "to",
        Direction::Import => "from",
    };
    text.push_str(&format!(" {way} {}/{}/NAME", wire::base(prefix, &rule.prefix), rule.kind.word()));
    match &rule.kind {
        Kind::Topic { delivery: Delivery::Lossy { every: None }, .. } => text.push_str("; lossy"),
        Kind::Topic { delivery: Delivery::Lossy { every: Some(every) }, .. } => {
            text.push_str(&format!("; lossy, at most one in {}", ramway_cli::units::short(*every)));
        }
        Kind::Newest { every, .. } if every.is_zero() => text.push_str("; the newest only"),
        Kind::Newest { every, .. } => {
            text.push_str(&format!("; the newest only, at most one in {}", ramway_cli::units::short(*every)));
        }
        Kind::Bus { max_connections, .. } => {
            text.push_str(&format!("; at most {max_connections} connections of each name at a time"));
        }
        _ => text.push_str("; reliable"),
    }
    if let (Kind::Bus { .. }, Some(on_disconnect)) = (&rule.kind, rule.kind.on_disconnect()) {
        text.push_str(&match on_disconnect {
            OnDisconnect::Block => "; while the link is down they wait".to_owned(),
            OnDisconnect::EjectAfter(time) => {
                let time = ramway_cli::units::short(time);
                format!("; once the link was down for {time}, each side is told that the other one died")
            }
        });
        return text;
    }
    match (rule.kind.on_disconnect(), rule.direction) {
        (None, _) => {}
        (Some(OnDisconnect::Block), Direction::Export) => {
            text.push_str("; while the link is down its sender waits once it is full");
        }
        (Some(OnDisconnect::Block), Direction::Import) => text.push_str("; while the link is down its receiver waits"),
        (Some(OnDisconnect::EjectAfter(time)), Direction::Export) => {
            text.push_str(&format!(
                "; its sender is let go once the link was down for {}",
                ramway_cli::units::short(time)
            ));
        }
        (Some(OnDisconnect::EjectAfter(time)), Direction::Import) => {
            let time = ramway_cli::units::short(time);
            text.push_str(&format!("; its receiver is told that the sender died once the link was down for {time}"));
        }
    }
    text
}
