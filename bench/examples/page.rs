//! Makes the page of a report that was written with `--json`.
//!
//!     cargo run --release -p ramway-bench --example page -- REPORT.json PAGE.html

use ramway_bench::{Report, page};

fn main() -> Result<(), ramway_bench::Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [json, html] = &arguments[..] else {
        return Err("usage: page REPORT.json PAGE.html".into());
    };
    let report: Report = serde_json::from_slice(&std::fs::read(json)?)?;
    std::fs::write(html, page::html(&report))?;
    Ok(())
}
