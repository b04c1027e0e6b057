//! The HTTP-like program with all of its processes, for a moment.

use std::path::Path;
use std::process::Command;

fn run(arguments: &[&str]) -> (bool, String, Option<serde_json::Value>) {
    let name = format!("http-{}-{}.json", std::process::id(), arguments.join(""));
    let json = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut command = Command::new(env!("CARGO_BIN_EXE_http"));
    command.args(["--time-ms", "30", "--rounds", "3", "--warmup", "1", "--json"]).arg(&json).args(arguments);
    let output = command.output().unwrap();
    let report = std::fs::read(&json).ok().map(|text| serde_json::from_slice(&text).unwrap());
    let _ = std::fs::remove_file(&json);
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned(), report)
}

#[test]
fn every_process_serves() {
    // The programs of the other allocators are beside this one.
    for other in [env!("CARGO_BIN_EXE_http-jemalloc"), env!("CARGO_BIN_EXE_http-mimalloc")] {
        assert_eq!(Path::new(other).parent(), Path::new(env!("CARGO_BIN_EXE_http")).parent());
    }
    let (fine, said, report) = run(&["--threads", "4", "--largest", "65536"]);
    assert!(fine, "{said}");
    let report = report.unwrap();
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 10);
    for row in rows {
        assert!(row["failure"].is_null(), "{row}");
        let number = |name: &str| row["figures"][name].as_f64().unwrap();
        assert!(
            number("requests_per_s") > 0.0 && number("slowest_share") > 0.0 && number("slowest_share") <= 1.0,
            "{row}"
        );
        assert!(number("handed_share") > 0.1 && number("handed_share") <= 0.26, "{row}");
        assert!(number("to_pool") > 0.0 && number("peak_resident") > 0.0, "{row}");
        let pool = row["name"].as_str().unwrap().starts_with("pool");
        assert_eq!(row["figures"]["pool_misses"].is_number(), pool, "{row}");
        assert!(said.contains(row["name"].as_str().unwrap()), "{said}");
    }
}

#[test]
fn rows_are_chosen_by_a_part_of_their_names() {
    let (fine, said, report) = run(&["--only", "vec-system", "--threads", "2", "--handed", "0"]);
    assert!(fine, "{said}");
    let report = report.unwrap();
    assert_eq!(report["rows"].as_array().unwrap().len(), 1);
    assert_eq!(report["rows"][0]["figures"]["handed_share"], 0.0);
    assert!(report["rows"][0]["figures"]["to_pool"].is_null());
    let (fine, said, _) = run(&["--only", "nobody"]);
    assert!(!fine && said.contains("no row has nobody in its name"), "{said}");
}
