//! Two languages side by side in one interleaved run: only ratios within it mean anything.

use std::io::IsTerminal;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::Serialize;

use ramway_agents::{Event, Language, Result, languages, measured};

use crate::run::{Program, Scene};
use crate::table;

/// `ramway-conformance speed`
#[derive(clap::Args)]
pub struct Args {
    /// The language to compare with
    pub base: String,
    /// The language that is compared
    pub language: String,
    /// How often everything is measured, the warm-up not counted
    #[arg(long, default_value_t = 15)]
    pub rounds: usize,
    /// Five rounds
    #[arg(long)]
    pub quick: bool,
    /// Also the second language's own Unix sockets
    #[arg(long, value_parser = ["unix"])]
    pub over: Option<String>,
    /// Writes all figures into a file, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// What is timed.
struct Test {
    name: &'static str,
    /// Messages, or round trips: over a ring, and through the kernel.
    count: u64,
    count_in_kernel: u64,
    size: u64,
    batch: u64,
    capacity: u64,
    round_trip: bool,
    /// The least part of the base's rate that a port must reach.
    bar: f64,
    /// And how many times the rate of its own sockets.
    bar_in_kernel: Option<f64>,
}

const TESTS: &[Test] = &[
    Test {
        name: "round trip, 32 B, spinning",
        count: 100_000,
        count_in_kernel: 4000,
        size: 32,
        batch: 1,
        capacity: 1 << 20,
        round_trip: true,
        bar: 1.0 / 1.3,
        bar_in_kernel: Some(15.0),
    },
    Test {
        name: "one way, 32 B, each",
        count: 2_000_000,
        count_in_kernel: 40_000,
        size: 32,
        batch: 1,
        capacity: 1 << 20,
        round_trip: false,
        bar: 0.5,
        bar_in_kernel: Some(20.0),
    },
    Test {
        name: "one way, 32 B, batches of 32",
        count: 4_000_000,
        count_in_kernel: 400_000,
        size: 32,
        batch: 32,
        capacity: 1 << 20,
        round_trip: false,
        bar: 0.4,
        bar_in_kernel: None,
    },
    Test {
        name: "one way, 1 MiB in place",
        count: 1000,
        count_in_kernel: 200,
        size: 1 << 20,
        batch: 1,
        capacity: 8 << 20,
        round_trip: false,
        bar: 0.95,
        bar_in_kernel: None,
    },
];

/// The figures of one candidate in one test.
#[derive(Debug, Serialize)]
pub struct Row {
    /// What was timed.
    pub test: &'static str,
    /// The language, and what it went over.
    pub candidate: String,
    /// The smallest of all rounds, in nanoseconds a message or round trip.
    pub min_ns: f64,
    /// The median of all rounds.
    pub median_ns: f64,
    /// How many times as fast as the base it is: the median of the ratios within each round.
    pub rate_to_base: f64,
    /// How many times as fast as its own sockets, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_to_sockets: Option<f64>,
    /// What it must reach of `rate_to_base`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bar: Option<f64>,
    /// What it must reach of `rate_to_sockets`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bar_to_sockets: Option<f64>,
}

/// The median; NaN of nothing.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The median of how much longer `others` took than `own` in the same round.
pub fn ratio(own: &[f64], others: &[f64]) -> f64 {
    median(own.iter().zip(others).map(|(own, other)| other / own))
}

/// The two processors that both programs are pinned to, one each.
fn two_processors() -> Result<[usize; 2]> {
    let set = sched_getaffinity(None)?;
    let mut allowed = (0..1024).filter(|&cpu| set.is_set(cpu));
    let first = allowed.next().ok_or("no processor is allowed")?;
    Ok([first, allowed.next().unwrap_or(first)])
}

/// Nanoseconds a message or round trip of one run.
#[derive(Clone, Copy)]
struct Time {
    /// The smallest that was seen: of a group of round trips, or of the whole run where only that is timed.
    min_ns: f64,
    ns: f64,
}

/// An agent as it is started to be measured, on one processor from the very first.
fn start(scene: &Scene, language: &Language, label: &str, cpu: usize) -> Result<Program> {
    let mut command = language.speed_command();
    let mut set = CpuSet::new();
    set.set(cpu);
    // SAFETY: one system call, async-signal-safe, no allocation.
    unsafe { command.pre_exec(move || Ok(sched_setaffinity(None, &set)?)) };
    scene.start_as(language, command, label)
}

/// Both halves of one stretch: the following side is ready, and polls, before the leading one is told to go.
fn stretch(sides: &mut [Program; 2], test: &Test, count: u64) -> Result<[Event; 2]> {
    let [first, second] = sides;
    let halves = if test.round_trip { ["ping", "echo"] } else { ["send", "receive"] };
    let command = |half: &str| {
        let (size, batch) = (test.size, test.batch);
        format!("measure do={half} size={size} count={count} batch={batch} group=10 wait=spin")
    };
    first.ask(&command(halves[0]), "ready")?;
    second.ask(&command(halves[1]), "ready")?;
    let events = [first.ask("go", "measured")?, second.expect("measured")?];
    let received = &events[usize::from(!test.round_trip)];
    measured::check(received, count, test.size)?;
    Ok(events)
}

/// Runs one test once.
fn measure(test: &Test, language: &Language, sockets: bool, cpus: [usize; 2]) -> Result<Time> {
    let scene = Scene::new(Duration::from_secs(60))?;
    let count = if sockets { test.count_in_kernel } else { test.count };
    let (roles, names) = match (test.round_trip, sockets) {
        (true, _) => (["both", "both"], ["ring=there back=back", "ring=back back=there"]),
        (false, _) => (["producer", "consumer"], ["ring=there", "ring=there"]),
    };
    let outcome = (|| -> Result<Time> {
        let mut sides = [start(&scene, language, "first", cpus[0])?, start(&scene, language, "second", cpus[1])?];
        for (at, side) in sides.iter_mut().enumerate() {
            let socket = scene.directory().join("socket");
            let place = match (sockets, at) {
                (true, 0) => format!("over=unix listen={}", socket.display()),
                (true, _) => format!("over=unix connect={}", socket.display()),
                (false, 0) => format!("{} create=yes capacity={}", names[0], test.capacity),
                (false, _) => names[1].to_owned(),
            };
            side.tell(&format!("open role={} wait=spin {place}", roles[at]))?;
        }
        for side in &mut sides {
            side.expect("attached")?;
        }
        stretch(&mut sides, test, (count / 10).max(count * language.warm_up))?;
        let [first, second] = stretch(&mut sides, test, count)?;
        sides.into_iter().try_for_each(Program::finish)?;
        if test.round_trip {
            let mut samples: Vec<f64> = first.numbers("samples")?;
            samples.iter_mut().for_each(|group| *group /= 10.0);
            let min_ns = samples.iter().copied().fold(f64::INFINITY, f64::min);
            return Ok(Time { min_ns, ns: median(samples) });
        }
        let ns = (second.number::<f64>("ended_ns")? - first.number::<f64>("began_ns")?) / count as f64;
        Ok(Time { min_ns: ns, ns })
    })();
    outcome.map_err(|cause| format!("{}, {}: {cause}\n{}", language.name, test.name, scene.log().join("\n")).into())
}

/// Measures, in rounds, each of which has everything once in another order.
///
/// # Errors
/// A language that is not there, or a program that failed.
pub fn play(args: &Args) -> Result<Vec<Row>> {
    let find = |name: &String| {
        let language = languages::all(std::slice::from_ref(name))?.remove(0);
        match &language.missing {
            Some(missing) => Err(format!("{}: missing {missing}", language.name).into()),
            None => Ok::<_, Box<dyn std::error::Error + Send + Sync>>(language),
        }
    };
    let (base, other) = (find(&args.base)?, find(&args.language)?);
    let mut candidates = vec![(&base, false), (&other, false)];
    if args.over.is_some() {
        candidates.push((&other, true));
    }
    let cpus = two_processors()?;
    let rounds = if args.quick { args.rounds.min(5) } else { args.rounds.max(1) };
    let mut order: Vec<(usize, usize)> =
        (0..TESTS.len()).flat_map(|test| (0..candidates.len()).map(move |candidate| (test, candidate))).collect();
    let mut times = vec![vec![Vec::with_capacity(rounds); candidates.len()]; TESTS.len()];
    let mut least = vec![vec![f64::INFINITY; candidates.len()]; TESTS.len()];
    let bar = ProgressBar::new(((rounds + 1) * order.len()) as u64);
    bar.set_draw_target(if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    });
    for round in 0..=rounds {
        fastrand::shuffle(&mut order);
        for &(test, candidate) in &order {
            let (language, sockets) = candidates[candidate];
            let time = measure(&TESTS[test], language, sockets, cpus)?;
            // The first round warms up.
            if round > 0 {
                times[test][candidate].push(time.ns);
                least[test][candidate] = time.min_ns.min(least[test][candidate]);
            }
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    let mut rows = Vec::new();
    for (test, (times, least)) in TESTS.iter().zip(times.iter().zip(&least)) {
        for (at, (language, sockets)) in candidates.iter().enumerate() {
            let own = &times[at];
            let compared = at == 1;
            rows.push(Row {
                test: test.name,
                candidate: format!("{}{}", language.name, if *sockets { ", Unix socket" } else { "" }),
                min_ns: least[at],
                median_ns: median(own.iter().copied()),
                rate_to_base: ratio(own, &times[0]),
                rate_to_sockets: times.get(2).filter(|_| compared).map(|sockets| ratio(own, sockets)),
                bar: compared.then_some(test.bar),
                bar_to_sockets: test.bar_in_kernel.filter(|_| compared && times.len() > 2),
            });
        }
    }
    Ok(rows)
}

fn verdict(measured: f64, bar: Option<f64>) -> String {
    match bar {
        Some(bar) if measured >= bar => format!("{measured:.2} × (≥ {bar:.2}: met)"),
        Some(bar) => format!("{measured:.2} × (≥ {bar:.2}: MISSED)"),
        None => format!("{measured:.2} ×"),
    }
}

/// The rows as a table.
pub fn text(rows: &[Row], base: &str) -> String {
    let faster = format!("rate, × {base}");
    let head = ["", "", "min ns", "median ns", faster.as_str(), "rate, × sockets"];
    let line = |row: &Row| {
        vec![
            row.test.to_owned(),
            row.candidate.clone(),
            format!("{:.1}", row.min_ns),
            format!("{:.1}", row.median_ns),
            verdict(row.rate_to_base, row.bar),
            row.rate_to_sockets.map(|ratio| verdict(ratio, row.bar_to_sockets)).unwrap_or_default(),
        ]
    };
    table::figures(&head, 2, &rows.iter().map(line).collect::<Vec<_>>()).to_string()
}

/// The subcommand. A bar that is missed is printed, and no failure: the machine may have been busy.
pub fn run(args: &Args) -> ExitCode {
    let outcome = play(args).and_then(|rows| {
        println!("{}", text(&rows, rows.first().map_or("", |row| row.candidate.as_str())));
        if let Some(file) = &args.json {
            std::fs::write(file, serde_json::to_string_pretty(&rows)?)?;
        }
        Ok(())
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(cause) => {
            eprintln!("ramway-conformance: {cause}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_the_same_round() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert!(median([]).is_nan());
        // The second round was slow for both.
        assert_eq!(ratio(&[10.0, 100.0, 10.0], &[20.0, 200.0, 25.0]), 2.0);
    }

    #[test]
    fn a_missed_bar_shows() {
        assert_eq!(verdict(0.5, Some(0.5)), "0.50 × (≥ 0.50: met)");
        assert_eq!(verdict(0.4, Some(0.5)), "0.40 × (≥ 0.50: MISSED)");
        assert_eq!(verdict(2.0, None), "2.00 ×");
    }
}
