//! The suite: measured, shown, written, compared, checked.

use std::path::Path;

use ramway_bench::{Options, Placement, Plan, Report};

use super::files::Pending;
use super::{Meter, Suite, names};
use ramway_cli::failure::{ERROR, Failure, NOT_FOUND, Outcome, USAGE};
use ramway_cli::interrupt::Interrupt;
use ramway_cli::output;

/// Wide enough for everything, where no terminal says otherwise.
const WIDTH: usize = 120;

/// Does what was asked for.
pub fn run(suite: &Suite) -> Outcome {
    // Everything that can be wrong is found before the long part.
    let old = suite.compare.as_deref().map(read).transpose()?;
    let to_stdout = suite.json.as_deref().is_some_and(|path| path == Path::new("-"));
    let json = suite.json.as_deref().filter(|_| !to_stdout).map(Pending::new).transpose()?;
    if suite.html.as_deref() == Some(Path::new("-")) {
        return Err(Failure::new(USAGE, "--html needs a file's name: a page is nothing for standard output"));
    }
    let html = suite.html.as_deref().map(Pending::new).transpose()?;
    if let Some(path) = &suite.resume {
        // Only tried: the library writes it, group after group.
        drop(Pending::new(path)?);
    }
    let report = match &suite.from {
        Some(path) if suite.only.is_empty() => read(path)?,
        Some(path) => part(&read(path)?, suite, path)?,
        None => measure(suite)?,
    };

    if to_stdout {
        output::json(&report)?;
    }
    if let Some(file) = json {
        let text = serde_json::to_string_pretty(&report).map_err(|error| Failure::error(error.to_string()))?;
        file.write(&(text + "\n"))?;
    }
    if let Some(file) = html {
        file.write(&ramway_bench::page::html(&report))?;
    }
    if !to_stdout {
        output::print(&ramway_bench::text(&report, width()))?;
    }
    judge(suite, old.as_ref(), &report, to_stdout)
}

fn judge(suite: &Suite, old: Option<&Report>, report: &Report, to_stdout: bool) -> Outcome {
    let mut failures = Vec::new();
    if suite.from.is_none() && report.rows.iter().all(|row| row.figures.is_none()) {
        failures.push("no row could be measured");
    }
    if let (Some(old), Some(path)) = (old, &suite.compare) {
        let comparison = ramway_bench::compare(old, report);
        let text = format!("\nAgainst {}\n{}", path.display(), comparison.text(width()));
        if to_stdout {
            // What is on standard output there is JSON and nothing else.
            text.trim().lines().for_each(output::note);
        } else {
            output::print(&text)?;
        }
        if comparison.got_worse() {
            failures.push("something got slower");
        }
    }
    if suite.check && report.bars.iter().any(|bar| bar.met == Some(false)) {
        failures.push("a bar was missed");
    }
    if failures.is_empty() { Ok(()) } else { Err(Failure::new(ERROR, failures.join(", and "))) }
}

fn measure(suite: &Suite) -> Outcome<Report> {
    names::check_cpus(suite.cpus)?;
    let plan = match (suite.quick, suite.full) {
        (true, _) => Plan::Quick,
        (_, true) => Plan::Full,
        _ => Plan::Standard,
    };
    let cannot = |error: ramway_bench::Failure| Failure::error(format!("cannot measure: {error}"));
    let catalogue = ramway_bench::catalogue(suite.peers.as_deref()).map_err(cannot)?;
    names::check_only(&suite.only, plan, &catalogue)?;
    if suite.time.is_some_and(|time| time.is_zero()) {
        return Err(Failure::new(USAGE, "--time 0 leaves nothing to measure"));
    }
    let mut options = Options::new(plan);
    options.only.clone_from(&suite.only);
    options.placement = match (suite.swap, suite.unpinned) {
        (true, _) => Placement::Swapped,
        (_, true) => Placement::Unpinned,
        _ => Placement::Pinned,
    };
    options.cpus = suite.cpus;
    options.both_orders = suite.both_orders;
    options.realtime = suite.realtime;
    options.rounds = suite.rounds;
    options.group_time = suite.time;
    options.state.clone_from(&suite.resume);
    options.peers.clone_from(&suite.peers);

    let interrupt = Interrupt::install()?;
    interrupt.also(&options.interrupted)?;
    let meter = Meter::new();
    let report = ramway_bench::run(&options, &mut |progress| meter.show(progress));
    meter.clear();
    interrupt.check()?;
    let report = report.map_err(cannot)?;
    if report.rows.is_empty() {
        return Err(Failure::error("nothing was measured: no mechanism of the rows that --only names can do that"));
    }
    Ok(report)
}

/// The rows of a report that `--only` names.
fn part(report: &Report, suite: &Suite, path: &Path) -> Outcome<Report> {
    report.only(&suite.only).map_err(|text| {
        let said = format!("no row of {} has `{text}` in its name (ramway bench --list has all names)", path.display());
        Failure::new(USAGE, said)
    })
}

fn read(path: &Path) -> Outcome<Report> {
    let code = if path.exists() { ERROR } else { NOT_FOUND };
    ramway_bench::read_report(path).map_err(|error| Failure::new(code, error.to_string()))
}

/// Of the terminal that the tables go to.
fn width() -> usize {
    let mut table = comfy_table::Table::new();
    table.set_content_arrangement(comfy_table::ContentArrangement::Dynamic);
    table.width().map_or(WIDTH, usize::from)
}
