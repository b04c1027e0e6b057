//! The suite without the `ramway` command: `report [--quick] [--json] [--seconds=N] [FILTER]`, or `report demo`.

use std::time::Duration;

fn main() -> Result<(), ramway_bench::Failure> {
    if let Some(code) = ramway_bench::child_main() {
        std::process::exit(code);
    }
    let mut options = ramway_bench::Options::full();
    let (mut json, mut demo) = (false, false);
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--quick" => options = ramway_bench::Options::quick(),
            "--json" => json = true,
            "demo" => demo = true,
            other if other.starts_with("--seconds=") => {
                options.rounds_for = Duration::from_secs(other["--seconds=".len()..].parse()?);
            }
            _ => options.filter = Some(argument),
        }
    }
    if demo {
        println!("{}", ramway_bench::demo_table(Duration::from_secs(12), &mut |_| {})?);
        return Ok(());
    }
    let report = ramway_bench::run(&options, &mut |_| {})?;
    if json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        println!("{report}");
    }
    Ok(())
}
