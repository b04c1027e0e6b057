//! The suite without the `ramway` command: `report [--json] [--plan=quick|standard|full] [--seconds=N] [PART…]`, where a
//! row is measured if its name `group/mechanism` contains one of the parts. `--seconds` is the time for each group.

use ramway_bench::{Options, Plan};
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: ramway_bench::CountingAllocator = ramway_bench::CountingAllocator;

fn main() -> Result<(), ramway_bench::Failure> {
    if let Some(code) = ramway_bench::child_main_builtin() {
        std::process::exit(code);
    }
    let mut options = Options::new(Plan::Standard);
    let mut json = false;
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--json" => json = true,
            "--plan=quick" => options.plan = Plan::Quick,
            "--plan=standard" => options.plan = Plan::Standard,
            "--plan=full" => options.plan = Plan::Full,
            other if other.starts_with("--seconds=") => {
                options.group_time = Some(Duration::from_secs_f64(other["--seconds=".len()..].parse()?));
            }
            _ => options.only.push(argument),
        }
    }
    let report = ramway_bench::run(&options, &mut |_| {})?;
    if json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{}", ramway_bench::text(&report, 120));
    }
    Ok(())
}
