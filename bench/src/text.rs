//! A report as tables for a terminal.

use crate::case::Test;
use crate::placement;
use crate::report::{Bar, Distance, Figures, Group, Report, Row};
use crate::stats::is_rate;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};
use std::fmt::{self, Write};
use std::time::{Duration, UNIX_EPOCH};

/// A column of a group's table: its head, how soon it goes where there is no room (0: never), what stands in it.
struct Column {
    head: &'static str,
    goes: u8,
    cell: fn(&Row, &Figures) -> String,
}

/// Left to right.
const COLUMNS: [Column; 13] = [
    Column { head: "", goes: 0, cell: |row, _| row.about.name.clone() },
    Column { head: "min", goes: 3, cell: |_, figures| duration(figures.ns.min) },
    Column { head: "p50", goes: 0, cell: |_, figures| duration(figures.ns.p50) },
    Column { head: "p99", goes: 8, cell: |_, figures| figures.ns.p99.map_or_else(none, duration) },
    Column { head: "p99.9", goes: 6, cell: |_, figures| figures.ns.p999.map_or_else(none, duration) },
    Column { head: "rate", goes: 0, cell: |_, figures| rate(figures.ops_per_s, "/s") },
    Column { head: "MiB/s", goes: 4, cell: |_, figures| figures.mib_per_s.map_or_else(none, three) },
    Column { head: "CPU %", goes: 5, cell: |_, figures| both(figures.cpu_percent, percent) },
    Column { head: "calls/op", goes: 2, cell: |_, figures| figures.syscalls.map_or_else(none, |n| both(n, per_op)) },
    Column { head: "copied", goes: 1, cell: |row, _| if row.about.copied { "yes" } else { "no" }.into() },
    Column { head: "×floor", goes: 7, cell: |_, figures| figures.ratio_to_floor.map_or_else(none, ratio) },
    Column { head: "×ceiling", goes: 1, cell: |_, figures| figures.ratio_to_ceiling.map_or_else(none, ratio) },
    ROUNDS,
];

/// Only where a run has two placements: how many rounds were measured in this one.
const ROUNDS: Column = Column { head: "rounds", goes: 4, cell: |_, figures| figures.rounds_ns.len().to_string() };

/// What stands where there is nothing to say.
const NONE: &str = "-";

/// What the heads mean, once above all tables.
const LEGEND: &str = "Times are of one operation, where it is short of the mean of several. CPU %, calls/op: processor time in percent of one processor and \
    system calls an operation, of the sending and the receiving process. ×floor: time divided by the floor's (*), \
    ×ceiling: rate divided by the ceiling's (^), each the median of the ratios within the rounds.";

/// The whole report in lines of at most `width` columns: what they say gets less where that is narrow.
pub fn text(report: &Report, width: usize) -> String {
    let mut out = String::new();
    // A write to a string does not fail.
    let _ = write(&mut out, report, width.max(40));
    out
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text(self, 120))
    }
}

fn write(out: &mut String, report: &Report, width: usize) -> fmt::Result {
    write_machine(out, report, width)?;
    writeln!(out, "\n{}", wrapped(LEGEND, width))?;
    let views = placement::views(report);
    // Each group once for each placement that it was measured in.
    let of = |id: &str| {
        let id = id.to_owned();
        views.iter().filter_map(move |view| Some((&**view, view.groups.iter().find(|group| group.id == id)?)))
    };
    let apart = report.groups.iter().flat_map(|group| of(&group.id));
    let groups: Vec<_> = apart.map(|(view, group)| (group, rows_of(view, group), placement::heading(view))).collect();
    // The same columns everywhere, so that the eye finds them.
    let narrowest = (0..10).find(|&gone| {
        groups.iter().all(|(group, rows, heading)| {
            lines(&table(group, rows, heading.is_some(), gone)).iter().all(|line| wide(line) <= width)
        })
    });
    for (group, rows, heading) in &groups {
        write_group(out, group, rows, heading.as_deref(), narrowest.unwrap_or(9), width)?;
    }
    write_bars(out, report, width)
}

/// The fastest first.
fn rows_of<'a>(report: &'a Report, group: &Group) -> Vec<&'a Row> {
    let mut rows: Vec<&Row> = report.rows.iter().filter(|row| row.group == group.id).collect();
    let time = |row: &Row| match &row.figures {
        // A stream's samples are what one receiver's look finds; the whole says how fast it is.
        Some(figures) if is_rate(group.test) && !group.test.is_access() => 1.0 / figures.ops_per_s,
        Some(figures) => figures.ns.p50,
        None => f64::INFINITY,
    };
    rows.sort_by(|a, b| time(a).total_cmp(&time(b)));
    rows
}

fn write_machine(out: &mut String, report: &Report, width: usize) -> fmt::Result {
    let machine = &report.machine;
    let settings = &report.settings;
    let mut pinned = match settings.cpus {
        [Some(lead), Some(follow)] => format!("processor {lead} sends, {follow} receives"),
        _ => "where they run is left to the scheduler".into(),
    };
    if machine.cpus < 2 {
        pinned = "one processor: the two processes take turns, and what polls waits for the scheduler".into();
    } else if machine.same_core == Some(true) {
        pinned.push_str(" (threads of one core)");
    }
    let memory = match machine.memory {
        0 => String::new(),
        bytes => format!(", {:.1} GiB of memory", bytes as f64 / f64::from(1 << 30)),
    };
    let virtual_or_not = if machine.virtualized { "a virtual machine" } else { "not virtualized" };
    let governor = machine.governor.as_ref().map_or(String::new(), |name| format!(", governor {name}"));
    let rustc = machine.rustc.as_ref().map_or(String::new(), |version| format!(", {version}"));
    let mut plan = settings.plan.clone();
    if !settings.only.is_empty() {
        write!(plan, ", only {}", settings.only.join(", "))?;
    }
    if settings.realtime {
        plan.push_str(", SCHED_FIFO and locked memory");
    }
    let began = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(report.began));
    let mut lines = vec![
        ("processor", machine.cpu.clone()),
        ("pinned", format!("{} allowed; {pinned}", machine.cpus)),
        ("system", format!("Linux {}, {virtual_or_not}{governor}{memory}", machine.kernel)),
        (
            "load",
            format!(
                "{:.2} before; huge pages {}, shared {}",
                machine.load, machine.huge_pages[0], machine.huge_pages[1]
            ),
        ),
        ("ramway", format!("{}{rustc}, {}", machine.ramway, machine.libc)),
        ("run", format!("{plan}; {began}, {:.0} s", report.seconds)),
    ];
    if let Some(said) = placement::said(report) {
        lines.insert(2, ("placement", said));
    }
    let peers = peers(report);
    if !peers.is_empty() {
        lines.push(("peers", peers.join(", ")));
    }
    let mut table = Table::new();
    table.load_preset(presets::UTF8_BORDERS_ONLY).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(width.min(usize::from(u16::MAX)) as u16);
    for (name, value) in lines {
        table.add_row([name.to_owned(), value]);
    }
    writeln!(out, "{table}")
}

/// The libraries that were measured, with their versions, each once.
fn peers(report: &Report) -> Vec<String> {
    let mut peers: Vec<String> = Vec::new();
    for row in report.rows.iter().filter(|row| row.figures.is_some() && !row.about.version.is_empty()) {
        let peer = format!("{} {}", row.about.name, row.about.version);
        if !peers.contains(&peer) {
            peers.push(peer);
        }
    }
    peers.sort();
    peers
}

fn write_group(
    out: &mut String,
    group: &Group,
    rows: &[&Row],
    placement: Option<&str>,
    gone: u8,
    width: usize,
) -> fmt::Result {
    let rounds = match group.rounds {
        0 => String::new(),
        rounds => format!(" · {rounds} rounds"),
    };
    let placed = placement.map_or(String::new(), |placement| format!(" · {placement}"));
    writeln!(out, "\n{}", wrapped(&format!("{} · {}{rounds}{placed}", group.id, group.title), width))?;
    if rows.iter().any(|row| row.figures.is_some()) {
        for line in lines(&table(group, rows, placement.is_some(), gone)) {
            writeln!(out, "{line}")?;
        }
    }
    for row in rows {
        let parts = row.figures.iter().flat_map(|figures| &figures.parts);
        let parts: Vec<_> = parts.map(|(name, ns)| format!("{name} {}", duration(*ns))).collect();
        if !parts.is_empty() {
            let line = format!("  {}, both sides together: {}", row.about.name, parts.join(", "));
            writeln!(out, "{}", wrapped(&line, width))?;
        }
        let ratios = row.figures.iter().flat_map(|figures| &figures.ratios);
        let ratios: Vec<_> = ratios.map(|(name, ratio)| format!("{name} {ratio:.2}")).collect();
        if !ratios.is_empty() {
            writeln!(out, "{}", wrapped(&format!("  {}: {}", row.about.name, ratios.join(", ")), width))?;
        }
        let late = row.figures.as_ref().filter(|figures| group.test == Test::Pauses && figures.stalls > 0);
        if let Some(figures) = late {
            let (name, stalls, of) = (&row.about.name, figures.stalls, figures.operations);
            writeln!(out, "{}", wrapped(&format!("  {name}: {stalls} of {of} round trips took over 20 ms"), width))?;
        }
        if let Some(why) = &row.failure {
            let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
            writeln!(out, "{}", wrapped(&format!("  {}: {why}", row.about.name), width))?;
        }
    }
    Ok(())
}

/// The rows that have figures, without the columns that go first.
fn table(group: &Group, rows: &[&Row], apart: bool, gone: u8) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    let there = |column: &&Column| (column.goes == 0 || column.goes > gone) && (apart || column.head != ROUNDS.head);
    let columns: Vec<&Column> = COLUMNS.iter().filter(there).collect();
    table.set_header(columns.iter().map(|column| Cell::new(column.head)));
    for row in rows {
        let Some(figures) = &row.figures else { continue };
        let mut cells: Vec<String> = columns.iter().map(|column| (column.cell)(row, figures)).collect();
        let is = |named: &Option<String>| named.as_ref() == Some(&row.about.name);
        let mark = format!("{}{}", if is(&group.floor) { "*" } else { "" }, if is(&group.ceiling) { "^" } else { "" });
        cells[0].push_str(&mark);
        table.add_row(cells);
    }
    for (at, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        column.set_cell_alignment(if at == 0 { CellAlignment::Left } else { CellAlignment::Right });
    }
    table
}

/// Without the blanks that the last column's padding leaves; two in front.
fn lines(table: &Table) -> Vec<String> {
    table.lines().map(|line| format!("  {}", line.trim_end())).collect()
}

fn write_bars(out: &mut String, report: &Report, width: usize) -> fmt::Result {
    let bars = &report.bars;
    // Who asked for some rows only knows that others are missing.
    let shown = |bar: &&Bar| bar.met.is_some() || report.settings.only.is_empty();
    if bars.iter().filter(shown).count() == 0 {
        return Ok(());
    }
    let count = |met| bars.iter().filter(|bar| bar.met == met).count();
    let (met, missed, open) = (count(Some(true)), count(Some(false)), count(None));
    writeln!(out, "\nBars: {met} met, {missed} missed, {open} not measured")?;
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(width.min(usize::from(u16::MAX)) as u16);
    let apart = bars.iter().any(|bar| bar.placement.is_some());
    for Bar { what, bar, measured, met, placement, .. } in bars.iter().filter(shown) {
        let verdict = match met {
            Some(true) => "  met",
            Some(false) => "  MISSED",
            None => "  -",
        };
        let mut cells = vec![verdict, what.as_str(), bar.as_str(), measured.as_str()];
        if apart {
            cells.insert(1, placement.map_or("", Distance::name));
        }
        table.add_row(cells);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    for line in table.lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// Broken at blanks; what goes on is indented.
pub(crate) fn wrapped(text: &str, width: usize) -> String {
    let first = text.len() - text.trim_start().len();
    let (mut out, mut column) = (" ".repeat(first), first);
    for word in text.split_whitespace() {
        if column > first && column + 1 + wide(word) > width {
            out.push_str("\n    ");
            column = 4;
        } else if column > first {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += wide(word);
    }
    out
}

/// Columns on a terminal; nothing here is wider than one or combines.
fn wide(text: &str) -> usize {
    text.chars().count()
}

fn none() -> String {
    NONE.into()
}

fn both(values: [f64; 2], show: fn(f64) -> String) -> String {
    format!("{} {}", show(values[0]), show(values[1]))
}

/// Of one processor.
fn percent(percent: f64) -> String {
    if percent < 9.95 { format!("{percent:.1}") } else { format!("{percent:.0}") }
}

/// What there is of something in one operation: none at all is `0`, hardly any is not.
fn per_op(count: f64) -> String {
    match count {
        0.0 => "0".into(),
        count if count < 0.01 => "<.01".into(),
        count if count < 9.95 => format!("{count:.2}"),
        count => format!("{count:.0}"),
    }
}

fn ratio(ratio: f64) -> String {
    if ratio < 0.005 { "<.01".into() } else { three(ratio) }
}

/// A number with three significant digits and a unit prefix.
pub(crate) fn rate(per_second: f64, unit: &str) -> String {
    let (value, prefix) = match per_second {
        v if v >= 1e9 => (v / 1e9, "G"),
        v if v >= 1e6 => (v / 1e6, "M"),
        v if v >= 1e3 => (v / 1e3, "k"),
        v => (v, ""),
    };
    format!("{} {prefix}{unit}", three(value))
}

/// Nanoseconds with three significant digits, in the unit that keeps them short.
pub(crate) fn duration(ns: f64) -> String {
    match ns {
        ns if ns < 999.5 => format!("{} ns", three(ns)),
        ns if ns < 999_500.0 => format!("{} µs", three(ns / 1e3)),
        ns => format!("{} ms", three(ns / 1e6)),
    }
}

pub(crate) fn three(value: f64) -> String {
    if value < 9.995 {
        format!("{value:.2}")
    } else if value < 99.95 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::{About, Kind};
    use crate::sample::{figures, report, row};

    fn run() -> Report {
        let peer = About::new("tachyon", Kind::Peer, true, "a peer").version("0.5.1");
        let mut measured = row("rtt-spin", "tachyon", figures(&[120.0; 5]));
        measured.about = peer.clone();
        let mut mutex = row("one-way-32-each", "mutex-ring", figures(&[4_321.0; 5]));
        mutex.figures.as_mut().expect("figures").parts = vec![("lock".into(), 20.0), ("copy".into(), 3.5)];
        let mut run = report(vec![
            row("rtt-spin", "ring", figures(&[110.0; 5])),
            row("rtt-spin", "raw-flag", figures(&[109.0; 5])),
            measured,
            mutex,
            Row::failed("one-way-32-each", peer, "did not build:\nno clang on the PATH of this machine".into()),
        ]);
        run.bars = crate::bars::bars(&run);
        run
    }

    #[test]
    fn everything_is_said_in_120_columns() {
        let text = text(&run(), 120);
        assert!(text.lines().all(|line| wide(line) <= 120), "{text}");
        for part in ["tachyon 0.5.1", "raw-flag*", "p99.9", "MiB/s", "copied", "×ceiling", "100 100"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(text.contains("  tachyon: did not build: no clang on the PATH of this machine\n"), "{text}");
        assert!(text.contains("  mutex-ring, both sides together: lock 20.0 ns, copy 3.50 ns\n"), "{text}");
        assert!(text.contains("Bars: 2 met, 1 missed, "), "{text}");
        // The fastest comes first.
        let at = |name: &str| text.find(&format!("\n{name}")).expect("a row");
        assert!(at("  raw-flag*") < at("  ring ") && at("  ring ") < at("  tachyon "));
    }

    #[test]
    fn lost_wake_ups_are_said() {
        let mut lost = row("pauses", "ring", figures(&[100.0; 5]));
        lost.figures.as_mut().expect("figures").stalls = 7;
        let mut run = report(vec![lost]);
        assert!(!text(&run, 120).contains("took over 20 ms"));
        run.groups[0].test = Test::Pauses;
        assert!(text(&run, 120).contains("  ring: 7 of 1000000 round trips took over 20 ms\n"));
    }

    #[test]
    fn a_narrow_terminal_gets_fewer_columns() {
        for width in [100, 80, 60, 40] {
            let text = text(&run(), width);
            assert!(text.lines().all(|line| wide(line) <= width), "{width}: {text}");
            assert!(text.contains("p50") && text.contains("rate") && text.contains("raw-flag"), "{text}");
        }
        assert!(!text(&run(), 40).contains("p99.9"));
    }

    #[test]
    fn numbers_have_three_digits() {
        assert_eq!((duration(9.999), duration(110.4)), ("10.0 ns".into(), "110 ns".into()));
        assert_eq!((duration(40_123.0), duration(20.5e6)), ("40.1 µs".into(), "20.5 ms".into()));
        assert_eq!((rate(178.2e6, "/s"), rate(12.0, "B/s")), ("178 M/s".into(), "12.0 B/s".into()));
        assert_eq!((per_op(0.0), per_op(0.0001), per_op(2.0)), ("0".into(), "<.01".into(), "2.00".into()));
    }
}
