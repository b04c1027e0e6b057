//! Names and processors from the command line: which of them there are, and which one was probably meant.

use ramway_bench::{Catalogue, Plan};
use rustix::thread::sched_getaffinity;

use ramway_cli::failure::{Failure, Outcome, USAGE};

/// Reads `A,B`.
pub fn parse_cpus(text: &str) -> Result<[usize; 2], String> {
    let numbers: Result<Vec<usize>, _> = text.split(',').map(|part| part.trim().parse()).collect();
    match numbers.as_deref() {
        Ok([a, b]) if a != b => Ok([*a, *b]),
        Ok([_] | [_, _]) => Err("two different processors are needed, the sender's first: 0,1".into()),
        _ => Err(format!("`{text}` does not name two processors, such as 0,1")),
    }
}

/// Fails unless this process may use both.
pub fn check_cpus(cpus: Option<[usize; 2]>) -> Outcome {
    let (Some(cpus), Ok(allowed)) = (cpus, sched_getaffinity(None)) else { return Ok(()) };
    let may = |cpu: usize| cpu < rustix::thread::CpuSet::MAX_CPU && allowed.is_set(cpu);
    let Some(refused) = cpus.into_iter().find(|&cpu| !may(cpu)) else { return Ok(()) };
    let list: Vec<String> =
        (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| may(cpu)).map(|cpu| cpu.to_string()).collect();
    let said = format!("processor {refused} may not be used here; these may: {}", list.join(", "));
    Err(Failure::new(USAGE, said))
}

/// Fails unless every text is in the name of a row that the plan holds.
pub fn check_only(only: &[String], plan: Plan, catalogue: &Catalogue) -> Outcome {
    let order = |plan| match plan {
        Plan::Quick => 0,
        Plan::Standard => 1,
        _ => 2,
    };
    let (mut something, mut lacks) = (false, None);
    for text in only {
        let rows = catalogue.meant(text);
        let held: Vec<_> = rows.iter().filter(|(_, least)| order(*least) <= order(plan)).collect();
        let missing: Vec<_> = held.iter().filter_map(|(id, _)| missing(id, catalogue)).collect();
        something |= missing.len() < held.len();
        if !held.is_empty() {
            lacks = lacks.or(missing.into_iter().next());
            continue;
        }
        let said = match rows.first() {
            Some((_, Plan::Standard)) => {
                format!("no row of a quick run has `{text}` in its name; without --quick some do")
            }
            Some(_) => format!("no row of this run has `{text}` in its name; with --full some do"),
            None => {
                let groups = catalogue.groups.iter().map(|group| group.id.as_str());
                let mechanisms = catalogue.mechanisms.iter().map(|one| one.about.name.as_str());
                let near = near(text, groups.chain(mechanisms));
                format!("no row has `{text}` in its name{near} (ramway bench --list has all of them)")
            }
        };
        return Err(Failure::new(USAGE, said));
    }
    match lacks {
        // A peer that is missing beside others that are not is a row that says so, or none.
        Some(said) if !something => Err(Failure::error(format!("nothing to measure: {said}"))),
        _ => Ok(()),
    }
}

/// Why the mechanism of a row cannot be measured, if it cannot.
fn missing(row: &str, catalogue: &Catalogue) -> Option<String> {
    let (_, name) = row.split_once('/')?;
    let one = catalogue.mechanisms.iter().find(|one| one.about.name == name)?;
    Some(format!("{name}: {}", one.missing.as_deref()?.lines().next().unwrap_or_default()))
}

/// `; did you mean …?`, if something is much like it.
pub fn near<'a>(text: &str, names: impl Iterator<Item = &'a str>) -> String {
    // The parts of GROUP/MECHANISM each for itself.
    let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty()).collect();
    let like = |name: &str| parts.iter().map(|part| strsim::jaro_winkler(part, name)).fold(0.0, f64::max);
    let mut found: Vec<(f64, &str)> = names.map(|name| (like(name), name)).filter(|(like, _)| *like > 0.8).collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found.dedup_by_key(|(_, name)| *name);
    let names: Vec<String> = found.iter().take(3).map(|(_, name)| format!("`{name}`")).collect();
    if names.is_empty() { String::new() } else { format!("; did you mean {}?", names.join(" or ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_processors_are_two() {
        assert_eq!(parse_cpus("0,1"), Ok([0, 1]));
        assert_eq!(parse_cpus(" 3, 2"), Ok([3, 2]));
        for wrong in ["", "0", "1,1", "0,1,2", "a,b", "-1,0"] {
            assert!(parse_cpus(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_was_meant_is_found() {
        let names = ["ring", "rtt-spin", "tachyon", "one-way-32-each"];
        assert_eq!(near("rign", names.into_iter()), "; did you mean `ring`?");
        assert_eq!(near("rtt-spn/tachion", names.into_iter()), "; did you mean `rtt-spin` or `tachyon`?");
        assert_eq!(near("carrier pigeon", names.into_iter()), "");
    }
}
