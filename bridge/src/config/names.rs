//! Which rule a name falls under, and why it falls under none. What no rule names stays on its machine.

use std::fmt;

use ramway::layout;

use super::{Delivery, Direction, Kind, Rule};

/// Why a name is not bridged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// No rule names it.
    NoRule,
    /// A rule names it and takes it out again.
    Denied {
        /// Which rule.
        rule: String,
        /// By which pattern.
        pattern: String,
    },
    /// A rule names it, of another kind.
    KindDiffers {
        /// Which rule.
        rule: String,
        /// What the rule says.
        wanted: &'static str,
        /// What it is.
        is: &'static str,
    },
    /// Only a rule of the other direction names it.
    Direction {
        /// Which rule.
        rule: String,
        /// What the rule says.
        is: Direction,
    },
    /// A listener that was bound by a path, whose segment has a name that nobody connects to.
    ByPath,
    /// Several rules name it, which cannot all be followed.
    Conflict(String),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRule => f.write_str("no rule names it"),
            Self::Denied { rule, pattern } => write!(f, "denied by `except` (\"{pattern}\") of {rule}"),
            Self::KindDiffers { rule, wanted, is } => write!(f, "it is a {is}, and {rule} is for kind \"{wanted}\""),
            Self::Direction { rule, is: Direction::Export } => write!(f, "{rule} only exports it"),
            Self::Direction { rule, is: Direction::Import } => write!(f, "{rule} only imports it"),
            Self::ByPath => f.write_str("it listens at a path; a bridge connects to names, so bind it by its name"),
            Self::Conflict(text) => f.write_str(text),
        }
    }
}

/// The rules by which a segment of this machine is exported.
///
/// # Errors
/// Why it is not.
pub fn exports<'a>(rules: &'a [Rule], name: &str, kind: layout::Kind) -> Result<Vec<&'a Rule>, Why> {
    let fits = |rule: &Rule| rule.kind.segment() == kind;
    if kind == layout::Kind::Listener && name.ends_with(ramway::facts::LOCK_SUFFIX) {
        return Err(Why::ByPath);
    }
    let found = select(rules, name, Direction::Export, kind.name(), fits)?;
    // An import of the same name makes a segment here, which may be the one in question.
    let imports = rules.iter().filter(|rule| rule.direction == Direction::Import && rule.covers(name));
    apart(name, &found, imports)?;
    Ok(found)
}

/// The rule by which something that another bridge exports appears on this machine. `word` is its kind as a rule says it, `prefix` the
/// part of its key before the name.
///
/// # Errors
/// Why it does not.
pub fn import<'a>(rules: &'a [Rule], name: &str, word: &'static str, prefix: &str) -> Result<&'a Rule, Why> {
    let fits = |rule: &Rule| rule.kind.word() == word && rule.prefix == prefix;
    let found = select(rules, name, Direction::Import, word, fits)?;
    let exports = rules.iter().filter(|rule| rule.direction == Direction::Export && rule.covers(name));
    apart(name, &found, exports)?;
    Ok(found[0])
}

/// Those of one direction that name it and fit; at least one.
fn select<'a>(
    rules: &'a [Rule],
    name: &str,
    direction: Direction,
    is: &'static str,
    fits: impl Fn(&Rule) -> bool,
) -> Result<Vec<&'a Rule>, Why> {
    let named = |rule: &&Rule| rule.names.iter().any(|glob| glob.matches(name));
    let covering: Vec<&Rule> = rules.iter().filter(|rule| rule.direction == direction && rule.covers(name)).collect();
    let found: Vec<&Rule> = covering.iter().copied().filter(|rule| fits(rule)).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    if let Some(rule) = covering.first() {
        return Err(Why::KindDiffers { rule: rule.shown(), wanted: rule.kind.word(), is });
    }
    if let Some(rule) = rules.iter().filter(|rule| rule.direction == direction).find(named) {
        let pattern = rule.except.iter().find(|glob| glob.matches(name)).map_or("", |glob| glob.as_str());
        return Err(Why::Denied { rule: rule.shown(), pattern: pattern.to_owned() });
    }
    match rules.iter().find(|rule| rule.covers(name)) {
        Some(rule) => Err(Why::Direction { rule: rule.shown(), is: rule.direction }),
        None => Err(Why::NoRule),
    }
}

/// That no two of these are in each other's way.
fn apart<'a>(name: &str, found: &[&Rule], others: impl Iterator<Item = &'a Rule>) -> Result<(), Why> {
    let others: Vec<&Rule> = others.collect();
    for (number, first) in found.iter().enumerate() {
        for second in found[number + 1..].iter().chain(&others) {
            if let Some(why) = conflict(first, second) {
                let text = format!("both {} and {} name \"{name}\": {why}", first.shown(), second.shown());
                return Err(Why::Conflict(text));
            }
        }
    }
    Ok(())
}

/// Why two rules cannot both be followed for one name; `None` if they can.
pub(super) fn conflict(first: &Rule, second: &Rule) -> Option<&'static str> {
    let same_key = first.prefix == second.prefix;
    let same_segment = first.kind.segment() == second.kind.segment();
    match (first.direction, second.direction) {
        (Direction::Export, Direction::Export) if !same_segment => None,
        (Direction::Export, Direction::Export) => {
            if matches!(first.kind, Kind::Ring { .. }) {
                Some("a ring has one receiver, so it can be exported once; name it in one rule only")
            } else if same_key && first.kind.word() == second.kind.word() {
                Some("both export it under the same key; name it in one rule only, or give one of them another `prefix`")
            } else if label(first).is_some() && label(first) == label(second) {
                Some("both read it with the same label, which only one subscriber can have; give one of them another `label`")
            } else {
                None
            }
        }
        (Direction::Import, Direction::Import) => (first.kind.word() == second.kind.word())
            .then_some("both would make it on this machine; name it in one rule only"),
        _ => (same_key && same_segment).then_some(
            "one exports it and the other imports it under the same key, so that it would come back; take the name out of one of \
             them, or give one of them another `prefix`",
        ),
    }
}

fn label(rule: &Rule) -> Option<&str> {
    match &rule.kind {
        Kind::Topic { delivery: Delivery::Reliable { label, .. }, .. } => Some(label),
        _ => None,
    }
}
