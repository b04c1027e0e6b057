//! Of the page as text: what a browser makes of it is tested in `bench/page-tests`.

use crate::report::Report;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

fn figures(p50: f64) -> Value {
    json!({
        "operations": 1000, "ops_per_s": 1e9 / p50, "ops_per_s_best": 1e9 / p50, "mib_per_s": null,
        "ns": {"samples": 100, "group": 10, "min": p50, "mean": p50, "p50": p50, "p90": p50, "p95": null, "p99": null, "p999": null,
            "p9999": null, "max": p50 * 2.0},
        "curve": [[0.0, p50 * 0.123_456_7], [50.0, p50], [100.0, p50 * 2.0]], "rounds_ns": [p50], "spread": 0.01,
        "ratio_to_floor": null, "ratio_to_ceiling": null, "cpu_percent": [100.0, 0.4], "peak_rss": [1_048_576, 2_097_152],
        "shared": [0, 0], "context_switches": [0.0, 0.000_001], "syscalls": null, "allocations": null, "stalls": 0,
        "parts": [["lock", 30.0], ["copy", 10.0]], "ratios": [["slowest", 0.5]],
    })
}

fn row(group: &str, name: &str, figures: Value, failure: Option<&str>) -> Value {
    json!({
        "id": format!("{group}/{name}"), "group": group, "name": name, "kind": "peer", "what": name, "version": name,
        "copied": true, "failure": failure, "figures": figures,
    })
}

/// One group named `group` with the rows.
fn report(group: &str, rows: Vec<Value>, bars: Value) -> Report {
    let machine = serde_json::to_value(crate::machine::Machine::read([0, 1])).unwrap();
    serde_json::from_value(json!({
        "schema": 1, "began": 0, "seconds": 61.0,
        "settings": {"plan": group, "cpus": [0, null], "realtime": true, "only": [group]},
        "machine": machine,
        "groups": [{"id": group, "title": group, "test": "rtt", "mode": "spin", "size": 32, "capacity": 1_048_576,
            "gap_ns": 0, "work_ns": 0, "floor": group, "ceiling": null, "rounds": 5}],
        "rows": rows, "bars": bars,
    }))
    .unwrap()
}

/// The page's elements that can run something or fetch something.
fn count(page: &str, what: &str) -> usize {
    page.to_ascii_lowercase().matches(what).count()
}

#[test]
fn hostile_text_stays_text() {
    let harmless = super::html(&report("x", vec![row("x", "a", figures(10.0), None)], json!([])));
    for text in [
        "</script><script>alert(1)</script>",
        "<!--<script>",
        "\"><img src=x onerror=alert(1)>",
        "' onmouseover='alert(1)",
        "</title></style></table>&lt;svg onload=alert(1)>",
        "{{data}}{{nothing}}",
        "a\u{2028}b\u{0}c\nd",
    ] {
        let bars = json!([{"what": text, "bar": text, "measured": text, "met": null}]);
        let mut hostile = figures(10.0);
        hostile["ratios"] = json!([[text, 0.5]]);
        let rows = vec![row(text, text, hostile, None), row(text, "b", Value::Null, Some(text))];
        let page = super::html(&report(text, rows, bars));
        for element in
            ["<script", "</script", "<img", "<svg", "<style", "</style", "<!--", "<title", "</table", "<table"]
        {
            let allowed = match element {
                // The table of bars is there only if there are any.
                "<table" | "</table" => count(&harmless, element) + 1,
                _ => count(&harmless, element),
            };
            assert_eq!(count(&page, element), allowed, "{element} after {text:?}");
        }
        let (markup, rest) = page.split_once("id=\"data\">").unwrap();
        let back: Report = serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap();
        assert_eq!(back.rows[0].about.name, text);
        assert!(!markup.contains("onerror=alert(1)>") && !markup.contains("' onmouseover='alert"), "{text:?}");
    }
}

#[test]
fn every_row_is_in_its_table_without_a_script() {
    let rows = vec![
        row("rtt", "slow", figures(2500.0), None),
        row("rtt", "broken", Value::Null, Some("it crashed: signal 11")),
        row("rtt", "fast", figures(110.0), None),
    ];
    let page = super::html(&report("rtt", rows, json!([{"what": "w", "bar": "b", "measured": "m", "met": true}])));
    let table = page.split_once("<table class=\"figures\">").unwrap().1.split_once("</table>").unwrap().0;
    let at = |text: &str| table.find(text).unwrap_or_else(|| panic!("no {text} in {table}"));
    // The best first, what failed last.
    assert!(at("data-mechanism=\"fast\"") < at("data-mechanism=\"slow\""));
    assert!(at("data-mechanism=\"slow\"") < at("data-mechanism=\"broken\""));
    assert!(table.contains("failed: it crashed: signal 11"));
    assert!(table.contains("<td data-v=\"2500\">2.50&nbsp;<small>µs</small></td>"), "{table}");
    assert!(table.contains("1.00 / 2.00&nbsp;<small>MiB</small>"), "{table}");
    assert!(table.contains("0 / &lt;0.00001"), "{table}");
    assert!(table.contains("title=\"not measured\""));
    assert!(page.contains("<td>lock</td><td>30.0&nbsp;ns</td><td>75&nbsp;%</td>"));
    assert!(page.contains("<th scope=\"col\">slowest</th></tr>"));
    assert!(page.contains("<tr data-mechanism=\"fast\"><th scope=\"row\">fast</th><td>0.50</td></tr>"));
    assert!(page.contains("1 met, 0 missed, 0 not measured."));
    assert!(page.contains("took 1 min 1 s"));
}

#[test]
fn the_page_fetches_nothing() {
    let page = super::html(&report("x", vec![row("x", "a", figures(10.0), None)], json!([])));
    assert!(page.contains("default-src 'none'"));
    for fetching in ["src=", "@import", "url(", "fetch(", "XMLHttpRequest", "<iframe", "<object"] {
        assert!(!page.contains(fetching), "{fetching}");
    }
    assert_eq!(count(&page, "href=\"http"), 0);
    // Of the chart library's comment and the name space of SVG.
    let addresses: Vec<&str> = page.match_indices("http").map(|(at, _)| &page[at..(at + 30).min(page.len())]).collect();
    for address in addresses {
        let known = ["http://www.w3.org/2000/svg", "https://github.com/leeoniya/uPlot", "http-equiv"];
        assert!(known.iter().any(|known| address.starts_with(&known[..known.len().min(30)])), "{address}");
    }
}

#[test]
fn chart_times_are_rounded_and_the_rest_is_kept() {
    let report = report("x", vec![row("x", "a", figures(1000.0), None)], json!([]));
    let data: Report = serde_json::from_str(&super::data(&report)).unwrap();
    let figures = data.rows[0].figures.as_ref().unwrap();
    assert_eq!(figures.curve[0], (0.0, 123.5));
    assert_eq!(figures.ns.p50, 1000.0);
}

/// A changed library must come with the hash that `scripts/vendor-uplot.sh` wrote for it.
#[test]
fn the_chart_library_is_the_published_one() {
    let files: [(&str, &[u8]); 3] = [
        ("uPlot.iife.min.js", include_bytes!("vendor/uPlot.iife.min.js")),
        ("uPlot.min.css", include_bytes!("vendor/uPlot.min.css")),
        ("LICENSE", include_bytes!("vendor/LICENSE")),
    ];
    let sums = include_str!("vendor/SHA256SUMS");
    for (name, bytes) in files {
        let hash: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(sums.lines().any(|line| line == format!("{hash}  {name}")), "{name} is {hash}");
    }
    let (_, readme) = include_str!("vendor/README.md").split_once("uPlot) ").unwrap();
    let version = readme.split(' ').next().unwrap();
    assert!(include_str!("vendor/uPlot.iife.min.js").contains(&format!("(v{version})")), "not version {version}");
}
