//! Vectors and matrix, as `make conformance` runs them.

use std::process::ExitCode;

use ramway_agents::Result;

use crate::{matrix, missing_is_failure, summary, vectors};

/// `ramway-conformance all`
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    length: matrix::Length,
}

fn play(args: &Args) -> Result<(usize, usize, usize)> {
    println!("==> vectors");
    let chosen = vectors::Args { language: Vec::new(), only: None, json: false, jobs: 8 };
    let (mut passed, mut failed, _) = vectors::count(&chosen)?;
    println!("==> languages with each other");
    let chosen = matrix::Args {
        languages: Vec::new(),
        pairs: Vec::new(),
        scenarios: Vec::new(),
        length: args.length,
        spread: true,
        jobs: None,
        json: None,
        seed: None,
    };
    let report = matrix::play(&chosen)?;
    print!("{}", report.text());
    println!("{:.0} s", report.seconds);
    passed += report.counts().0;
    failed += report.counts().1;
    // A language that is missing is counted once, not once for each part.
    let missing = missing_is_failure(report.skipped.len());
    Ok((passed, failed + missing, report.skipped.len() - missing))
}

/// The subcommand.
pub fn run(args: &Args) -> ExitCode {
    match play(args) {
        Ok((passed, failed, skipped)) => {
            println!("{}", summary(passed, failed, skipped));
            if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(cause) => {
            println!("ramway-conformance: {cause}");
            println!("{}", summary(0, 1, 0));
            ExitCode::FAILURE
        }
    }
}
