//! The tables: whole and in order without any script; `page.js` makes them sortable by the `data-v` of each cell.

use super::format::{self, Quantity, digits, escape};
use super::words;
use crate::case::Test;
use crate::report::{Both, Figures, Group, Report, Row};
use std::fmt::Write;

/// What one cell shows, and what it is sorted by.
struct Cell {
    sort: f64,
    html: String,
}

/// A column of figures.
struct Column {
    key: &'static str,
    label: &'static str,
    /// What the figure is, for the heading's tooltip and the legend at the page's end.
    what: &'static str,
    /// Shown also when only the main columns are.
    main: bool,
    /// Left out of a table in which no row has it.
    optional: bool,
    /// Whether more is better.
    descending: bool,
    cell: fn(&Figures) -> Option<Cell>,
}

const fn column(
    key: &'static str,
    label: &'static str,
    what: &'static str,
    cell: fn(&Figures) -> Option<Cell>,
) -> Column {
    Column { key, label, what, main: false, optional: false, descending: false, cell }
}

impl Column {
    const fn main(mut self) -> Self {
        self.main = true;
        self
    }

    const fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    const fn descending(mut self) -> Self {
        self.descending = true;
        self
    }
}

const BOTH: &str = "Sender / receiver; sorted by the sum.";

static COLUMNS: [Column; 23] = [
    column("min", "min", "The shortest.", |f| time(Some(f.ns.min))).main(),
    column("mean", "mean", "The arithmetic mean.", |f| time(Some(f.ns.mean))),
    column("p50", "p50", "The median.", |f| time(Some(f.ns.p50))).main(),
    column("p90", "p90", "90 % take at most this long.", |f| time(f.ns.p90)),
    column("p95", "p95", "95 % take at most this long.", |f| time(f.ns.p95)),
    column("p99", "p99", "99 % take at most this long.", |f| time(f.ns.p99)).main(),
    column("p999", "p99.9", "99.9 % take at most this long.", |f| time(f.ns.p999)).main(),
    column("p9999", "p99.99", "99.99 % take at most this long.", |f| time(f.ns.p9999)),
    column("max", "max", "The longest.", |f| time(Some(f.ns.max))).main(),
    column("ops", "ops/s", "Median over the rounds of operations a second.", |f| {
        quantity(f.ops_per_s, format::rate(f.ops_per_s))
    })
    .main()
    .descending(),
    column("mib", "MiB/s", "Payload at that rate, in one direction.", |f| {
        f.mib_per_s.and_then(|v| quantity(v, format::mib_rate(v)))
    })
    .main()
    .optional()
    .descending(),
    column("cpu", "CPU %", "Processor time in percent of one processor.", |f| both(f.cpu_percent, |v| (digits(v), "")))
        .main(),
    column("rss", "peak RSS", "The most memory that was resident during a burst.", |f| {
        both(f.peak_rss.map(|v| v as f64), format::bytes)
    }),
    column("shared", "shared", "Of which shared memory.", |f| both(f.shared.map(|v| v as f64), format::bytes)),
    column("switches", "switches/op", "Context switches per operation, voluntary and not.", |f| {
        both(f.context_switches, |v| (digits(v), ""))
    }),
    column("syscalls", "syscalls/op", "System calls per operation, counted in bursts of their own.", |f| {
        f.syscalls.and_then(|v| both(v, |v| (digits(v), "")))
    }),
    column("allocations", "allocs/op", "Heap allocations per operation.", |f| {
        f.allocations.and_then(|v| both(v, |v| (digits(v), "")))
    }),
    column("allocated", "heap B/op", "Bytes per operation from a heap with a garbage collector (Java, C#).", |f| {
        f.allocated_bytes.and_then(|v| both(v, |v| (digits(v), "")))
    })
    .optional(),
    column("stalls", "stalls", "Operations that took longer than 20 ms.", |f| {
        quantity(f.stalls as f64, (f.stalls.to_string(), ""))
    }),
    column("rounds", "rounds", "How many rounds were measured, in this placement.", |f| {
        quantity(f.rounds_ns.len() as f64, (f.rounds_ns.len().to_string(), ""))
    }),
    column("spread", "spread", "Half the distance between the quartiles of the rounds' medians: the noise.", |f| {
        quantity(f.spread, (digits(f.spread * 100.0), "%"))
    }),
    column("floor", "× floor", "Time divided by the floor's time, the median of the ratios within each round.", |f| {
        ratio(f.ratio_to_floor)
    })
    .main()
    .optional(),
    column(
        "ceiling",
        "× ceiling",
        "Rate divided by the ceiling's rate, the median of the ratios within each round.",
        |f| ratio(f.ratio_to_ceiling),
    )
    .main()
    .optional()
    .descending(),
];

fn quantity(sort: f64, (number, unit): Quantity) -> Option<Cell> {
    let number = escape(&number);
    let html = if unit.is_empty() { number } else { format!("{number}&nbsp;<small>{unit}</small>") };
    sort.is_finite().then_some(Cell { sort, html })
}

fn time(ns: Option<f64>) -> Option<Cell> {
    ns.and_then(|ns| quantity(ns, format::time(ns)))
}

fn ratio(ratio: Option<f64>) -> Option<Cell> {
    ratio.and_then(|ratio| quantity(ratio, (digits(ratio), "×")))
}

fn both(values: Both<f64>, text: fn(f64) -> Quantity) -> Option<Cell> {
    let [lead, follow] = values.map(text);
    let number = if lead.1 == follow.1 {
        format!("{} / {}", lead.0, follow.0)
    } else {
        format!("{} {} / {}", lead.0, lead.1, follow.0)
    };
    quantity(values[0] + values[1], (number, follow.1))
}

/// The rows of a group, best first; failures last, by name.
pub(super) fn ordered<'a>(report: &'a Report, group: &Group) -> Vec<&'a Row> {
    let mut rows: Vec<&Row> = report.rows.iter().filter(|row| row.group == group.id).collect();
    let value = |row: &Row| {
        let figures = row.figures.as_ref()?;
        Some(match primary(group) {
            "ops" => -figures.ops_per_s,
            "cpu" => figures.cpu_percent.iter().sum(),
            _ => figures.ns.p50,
        })
    };
    rows.sort_by(|a, b| match (value(a), value(b)) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        (a, b) => a.is_none().cmp(&b.is_none()),
    });
    rows
}

/// The column by which a group's rows are in order: streams and passes are compared by their rate, a receiver that waits
/// by its processor time, everything else by its median.
fn primary(group: &Group) -> &'static str {
    match words::family(group.test) {
        _ if group.test == Test::Idle => "cpu",
        _ if matches!(
            group.test,
            Test::PoolMixed | Test::PoolPipeline | Test::Readers | Test::Lapped | Test::Producers
        ) =>
        {
            "ops"
        }
        "One way" | "Memory access" => "ops",
        _ => "p50",
    }
}

/// A group's table.
pub(super) fn group(report: &Report, group: &Group) -> String {
    let rows = ordered(report, group);
    let cells =
        |column: &Column| rows.iter().any(|row| row.figures.as_ref().is_some_and(|f| (column.cell)(f).is_some()));
    let columns: Vec<&Column> = COLUMNS.iter().filter(|column| !column.optional || cells(column)).collect();
    let first = primary(group);

    let mut out = String::new();
    let _ = write!(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{title}: table\"><table class=\"figures\">\
         <caption class=\"sr\">{title}</caption><thead><tr><th scope=\"col\" data-key=\"name\" data-text>mechanism</th>\
         <th scope=\"col\" data-key=\"kind\" data-text>kind</th><th scope=\"col\" data-key=\"copied\" data-text>copied</th>",
        title = escape(&group.title)
    );
    for column in &columns {
        let sorted = match (column.key == first, column.descending) {
            (false, _) => "",
            (true, false) => " aria-sort=\"ascending\"",
            (true, true) => " aria-sort=\"descending\"",
        };
        let class = if column.main { "" } else { " class=\"more\"" };
        let order = if column.descending { " data-descending" } else { "" };
        let _ = write!(
            out,
            "<th scope=\"col\" data-key=\"{}\"{class}{order}{sorted} title=\"{}\">{}</th>",
            column.key,
            escape(column.what),
            column.label
        );
    }
    out.push_str("</tr></thead><tbody>");
    for row in rows {
        write_row(&mut out, row, group, &columns);
    }
    out.push_str("</tbody></table></div>");
    out
}

fn write_row(out: &mut String, row: &Row, group: &Group, columns: &[&Column]) {
    let about = &row.about;
    let failed = if row.figures.is_none() { " failed" } else { "" };
    let _ = write!(
        out,
        "<tr class=\"{kind_id}{failed}\" data-mechanism=\"{name}\"><th scope=\"row\" title=\"{what}\">{name}{version}</th>\
         <td>{kind}</td><td>{copied}</td>",
        kind_id = words::kind_id(about.kind),
        name = escape(&about.name),
        what = escape(&about.what),
        version =
            if about.version.is_empty() { String::new() } else { format!("<small>{}</small>", escape(&about.version)) },
        kind = words::kind(about.kind),
        copied = if about.copied { "yes" } else { "no" },
    );
    match &row.figures {
        Some(figures) => {
            for column in columns {
                let class = if column.main { "" } else { " class=\"more\"" };
                let _ = match (column.cell)(figures) {
                    Some(cell) => write!(out, "<td data-v=\"{}\"{class}>{}</td>", cell.sort, cell.html),
                    // Nothing is compared with itself.
                    None if column.key == "floor" && group.floor.as_deref() == Some(&about.name) => {
                        write!(out, "<td data-v=\"1\"{class}>floor</td>")
                    }
                    None if column.key == "ceiling" && group.ceiling.as_deref() == Some(&about.name) => {
                        write!(out, "<td data-v=\"1\"{class}>ceiling</td>")
                    }
                    None => write!(out, "<td{class}><span title=\"not measured\">–</span></td>"),
                };
            }
        }
        None => {
            let why = row.failure.as_deref().unwrap_or("no figures");
            let _ = write!(out, "<td class=\"why\" colspan=\"{}\">failed: {}</td>", columns.len(), escape(why));
        }
    }
    out.push_str("</tr>");
}

/// Where an operation's time goes, for the mechanisms that say; empty if none does.
pub(super) fn parts(report: &Report, group: &Group) -> String {
    let mut rows = String::new();
    for row in ordered(report, group) {
        let Some(figures) = row.figures.as_ref().filter(|figures| !figures.parts.is_empty()) else { continue };
        let whole = figures.parts.iter().map(|(_, ns)| ns).sum::<f64>().max(f64::MIN_POSITIVE);
        for (part, ns) in &figures.parts {
            let (number, unit) = format::time(*ns);
            let percent = ns / whole * 100.0;
            let _ = write!(
                rows,
                "<tr data-mechanism=\"{name}\"><th scope=\"row\">{name}</th><td>{}</td><td>{number}&nbsp;{unit}</td>\
                 <td>{percent:.0}&nbsp;%</td></tr>",
                escape(part),
                number = escape(&number),
                name = escape(&row.about.name),
            );
        }
    }
    if rows.is_empty() {
        return rows;
    }
    format!(
        "<h3>Parts of an operation, both sides together</h3><div class=\"scroll parts\" tabindex=\"0\" role=\"region\" \
         aria-label=\"{}: parts\"><table><thead><tr><th scope=\"col\">mechanism</th><th scope=\"col\">part</th>\
         <th scope=\"col\">time</th><th scope=\"col\">share</th></tr></thead><tbody>{rows}</tbody></table></div>",
        escape(&group.title)
    )
}

/// The plain numbers of a group's rows, a column each; empty if none has any.
pub(super) fn ratios(report: &Report, group: &Group) -> String {
    let rows = ordered(report, group);
    let of = |row: &Row| row.figures.as_ref().map_or(Vec::new(), |figures| figures.ratios.clone());
    let mut names: Vec<String> = Vec::new();
    for (name, _) in rows.iter().flat_map(|row| of(row)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() {
        return String::new();
    }
    let mut out = format!(
        "<div class=\"scroll parts\" tabindex=\"0\" role=\"region\" aria-label=\"{}: ratios\"><table><thead><tr>\
         <th scope=\"col\">mechanism</th>",
        escape(&group.title)
    );
    for name in &names {
        let _ = write!(out, "<th scope=\"col\">{}</th>", escape(name));
    }
    out.push_str("</tr></thead><tbody>");
    for row in rows.iter().filter(|row| row.figures.is_some()) {
        let name = escape(&row.about.name);
        let _ = write!(out, "<tr data-mechanism=\"{name}\"><th scope=\"row\">{name}</th>");
        let of = of(row);
        for name in &names {
            let _ = match of.iter().find(|(known, _)| known == name) {
                Some((_, value)) => write!(out, "<td>{value:.2}</td>"),
                None => write!(out, "<td>–</td>"),
            };
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div>");
    out
}

/// What each column is.
pub(super) fn legend() -> String {
    let mut out = String::from("<dl class=\"legend\">");
    for column in &COLUMNS {
        let is_both =
            matches!(column.key, "cpu" | "rss" | "shared" | "switches" | "syscalls" | "allocations" | "allocated");
        let both = if is_both { format!(" {BOTH}") } else { String::new() };
        let _ = write!(out, "<div><dt>{}</dt><dd>{}{both}</dd></div>", column.label, escape(column.what));
    }
    out.push_str("</dl>");
    out
}

/// Each mechanism once: what it is.
pub(super) fn mechanisms(report: &Report) -> String {
    let mut out = String::from(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Mechanisms: table\"><table>\
         <thead><tr><th scope=\"col\">mechanism</th><th scope=\"col\">kind</th><th scope=\"col\">version</th>\
         <th scope=\"col\">what it is</th></tr></thead><tbody>",
    );
    for about in super::abouts(report) {
        let _ = write!(
            out,
            "<tr class=\"{}\" data-mechanism=\"{name}\"><th scope=\"row\">{name}</th><td>{}</td><td>{}</td><td>{}</td></tr>",
            words::kind_id(about.kind),
            words::kind(about.kind),
            escape(&about.version),
            escape(&about.what),
            name = escape(&about.name),
        );
    }
    out.push_str("</tbody></table></div>");
    out
}

/// The project's aims.
pub(super) fn bars(report: &Report) -> String {
    let mut out = String::from(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Bars: table\"><table class=\"bars\">\
         <thead><tr><th scope=\"col\">result</th><th scope=\"col\">what</th><th scope=\"col\">bar</th>\
         <th scope=\"col\">measured</th></tr></thead><tbody>",
    );
    for bar in &report.bars {
        let (class, mark, text) = match bar.met {
            Some(true) => ("met", "✓", "met"),
            Some(false) => ("missed", "✗", "missed"),
            None => ("unknown", "–", "not measured"),
        };
        let _ = write!(
            out,
            "<tr><td class=\"{class}\"><span aria-hidden=\"true\">{mark}</span> {text}</td><th scope=\"row\">{}</th>\
             <td>{}</td><td>{}</td></tr>",
            escape(&bar.placement.map_or(bar.what.clone(), |placement| format!("{} ({})", bar.what, placement.name()))),
            escape(&bar.bar),
            escape(&bar.measured)
        );
    }
    out.push_str("</tbody></table></div>");
    out
}
