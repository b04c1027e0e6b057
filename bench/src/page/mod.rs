//! The page: one HTML file that holds everything it shows and fetches nothing. The tables are written here and are
//! whole without a script; the scripts sort and filter them, and draw the charts from the report's JSON.

mod format;
mod table;
#[cfg(test)]
mod tests;
mod words;

use crate::case::Test;
use crate::channel::{About, Kind};
use crate::placement;
use crate::report::{Distance, Group, Report};
use format::{date, duration, escape, script_json};
use std::fmt::Write;

/// The report as one self-contained HTML file.
pub fn html(report: &Report) -> String {
    fill(include_str!("page.html"), |name| match name {
        "title" => escape(&format!("Ramway benchmark, {}", date(report.began))),
        "began" => date(report.began),
        "took" => duration(report.seconds),
        "settings" => words::settings(&report.settings),
        "machine" => machine(report),
        "placement" => placed(report),
        "overview" => overview(report),
        "bars" => bars(report),
        "navigation" => navigation(report),
        "filter" => filter(report),
        "groups" => groups(report),
        "legend" => table::legend(),
        "mechanisms" => table::mechanisms(report),
        "css" => concat!(include_str!("vendor/uPlot.min.css"), "\n", include_str!("page.css")).into(),
        "uplot" => include_str!("vendor/uPlot.iife.min.js").into(),
        "charts" => include_str!("charts.js").into(),
        "script" => include_str!("page.js").into(),
        "data" => script_json(&data(report)),
        name => unreachable!("the template names {name}"),
    })
}

/// Puts the parts into the template in one pass, so that no part's own text is ever taken for a place of the template.
fn fill(template: &str, part: impl Fn(&str) -> String) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").expect("the template closes what it opens");
        out.push_str(before);
        out.push_str(&part(name));
        rest = after;
    }
    out.push_str(rest);
    out
}

/// The report's JSON, with times rounded to what a chart can show: half the size.
fn data(report: &Report) -> String {
    let round = |value: &mut f64| {
        if value.is_finite() && *value != 0.0 {
            let scale = 10f64.powi(3 - value.abs().log10().floor() as i32);
            *value = (*value * scale).round() / scale;
        }
    };
    let mut report = report.clone();
    for row in &mut report.rows {
        for figures in row.figures.iter_mut().chain(row.apart.iter_mut().map(|apart| &mut apart.figures)) {
            for (percentile, ns) in &mut figures.curve {
                *percentile = (*percentile * 1e6).round() / 1e6;
                round(ns);
            }
            figures.rounds_ns.iter_mut().for_each(round);
        }
    }
    serde_json::to_string(&report).expect("a report is JSON")
}

/// Every mechanism once: Ramway's own first, then in the order of the report.
fn abouts(report: &Report) -> Vec<&About> {
    let mut abouts: Vec<&About> = Vec::new();
    for row in &report.rows {
        if abouts.iter().all(|about| about.name != row.about.name) {
            abouts.push(&row.about);
        }
    }
    abouts.sort_by_key(|about| match about.kind {
        Kind::Ramway => 0,
        Kind::ByHand => 1,
        Kind::Kernel => 2,
        Kind::Peer => 3,
    });
    abouts
}

/// A group's id as a fragment of the address: whatever it holds, no character that means something there.
fn anchor(id: &str) -> String {
    let safe = id.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' });
    format!("group-{}", safe.collect::<String>())
}

fn machine(report: &Report) -> String {
    let machine = serde_json::to_value(&report.machine).unwrap_or_default();
    let mut out = String::from("<dl class=\"facts\">");
    for (name, value) in words::machine(&machine) {
        let _ = write!(out, "<div><dt>{}</dt><dd>{}</dd></div>", escape(&name), escape(&value));
    }
    out.push_str("</dl>");
    out
}

fn bars(report: &Report) -> String {
    if report.bars.is_empty() {
        return "<p>This run was compared with none.</p>".into();
    }
    let count = |met| report.bars.iter().filter(|bar| bar.met == met).count();
    format!(
        "<p>{} met, {} missed, {} not measured.</p>{}",
        count(Some(true)),
        count(Some(false)),
        count(None),
        table::bars(report)
    )
}

fn navigation(report: &Report) -> String {
    let mut out = String::new();
    let mut family = "";
    for group in &report.groups {
        let of = words::family(group.test);
        if of != family {
            let end = if family.is_empty() { "" } else { "</ul>" };
            let _ = write!(out, "{end}<h2>{of}</h2><ul>");
            family = of;
        }
        let _ = write!(out, "<li><a href=\"#{}\">{}</a></li>", anchor(&group.id), escape(&group.title));
    }
    if !family.is_empty() {
        out.push_str("</ul>");
    }
    out
}

fn filter(report: &Report) -> String {
    let mut out = String::new();
    for kind in [Kind::Ramway, Kind::ByHand, Kind::Kernel, Kind::Peer] {
        let of: Vec<&About> = abouts(report).into_iter().filter(|about| about.kind == kind).collect();
        if of.is_empty() {
            continue;
        }
        let _ = write!(out, "<fieldset><legend>{}</legend>", words::kind(kind));
        for about in of {
            let name = escape(&about.name);
            let _ =
                write!(out, "<label><input type=\"checkbox\" value=\"{name}\" checked> <span>{name}</span></label>");
        }
        out.push_str("</fieldset>");
    }
    out
}

/// What the raw flag said about where the two processors were.
fn placed(report: &Report) -> String {
    placement::said(report)
        .map_or(String::new(), |said| format!("<p class=\"quiet\">Placement: {}.</p>", escape(&said)))
}

/// The charts of all groups, once for each placement.
fn overview(report: &Report) -> String {
    let mut out = String::new();
    for view in placement::views(report) {
        let (heading, attribute) = match (placement::of_two(&view), placement::seen(report).len()) {
            (Some(seen), 2..) => (placement::heading(&view), placement_attribute(seen.placement)),
            // Of what was measured without the flag there is nothing to draw here.
            (None, 2..) => continue,
            _ => (None, String::new()),
        };
        let heading = heading.map_or(String::new(), |text| format!("<h3 class=\"placement\">{}</h3>", sentence(&text)));
        let chart = |kind: &str| format!("<div class=\"chart\" data-chart=\"{kind}\"{attribute}></div>");
        let _ = write!(
            out,
            "{heading}{}<div class=\"pair\">{}{}</div>{}",
            chart("throughput"),
            chart("floor"),
            chart("ceiling"),
            chart("access")
        );
    }
    out
}

fn placement_attribute(placement: Distance) -> String {
    format!(" data-placement=\"{}\"", placement.name())
}

/// As the beginning of a line.
fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_uppercase().collect::<String>());
    escape(&format!("{}{}", first.unwrap_or_default(), chars.as_str()))
}

fn groups(report: &Report) -> String {
    let views = placement::views(report);
    let mut out = String::new();
    for group in &report.groups {
        let anchor = anchor(&group.id);
        let _ = write!(
            out,
            "<section class=\"group\" id=\"{anchor}\" aria-labelledby=\"{anchor}-h\"><h2 id=\"{anchor}-h\">{title}</h2>\
             <p>{about}</p><p class=\"quiet\">{around}</p>",
            title = escape(&group.title),
            about = escape(&words::sentence(group)),
            around = words::circumstances(group),
        );
        for view in &views {
            if view.groups.iter().any(|one| one.id == group.id) {
                write_view(&mut out, view, group);
            }
        }
        out.push_str("</section>");
    }
    out
}

/// A group in one placement.
fn write_view(out: &mut String, view: &Report, group: &Group) {
    let heading = placement::heading(view);
    let titled = match &heading {
        Some(heading) => Group { title: format!("{}, {heading}", group.title), ..group.clone() },
        None => group.clone(),
    };
    if let Some(heading) = heading {
        let _ = write!(out, "<h3 class=\"placement\">{}</h3>", sentence(&heading));
    }
    let attribute = placement::of_two(view).map_or(String::new(), |seen| placement_attribute(seen.placement));
    out.push_str(&table::group(view, &titled));
    out.push_str(&table::parts(view, &titled));
    out.push_str(&table::ratios(view, &titled));
    // The time of a wait is what was asked for: no distribution of the mechanism's.
    if !matches!(group.test, Test::Idle | Test::PoolHeld) {
        let _ = write!(
            out,
            "<div class=\"chart\" data-chart=\"latency\" data-group=\"{}\"{attribute}></div>",
            escape(&group.id)
        );
    }
}
