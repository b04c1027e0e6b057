//! Each mechanism for a moment, for what it carries and not for how fast.

use crate::channel::Burst;
use crate::pair::Pair;
use crate::plan::{self, Case, Test};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Two processes that poll on two processors leave no room for two more.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Not a test of its own: the second process of the others runs it.
#[test]
fn second_process() {
    if let Some(code) = crate::child_main() {
        std::process::exit(code);
    }
}

/// Every case of the report, with a few operations in each burst, three times in turn.
fn run_all(of: impl Fn(&Case) -> bool) {
    let _alone = alone();
    let mut cases: Vec<Case> = plan::all().into_iter().filter(of).collect();
    assert!(!cases.is_empty());
    for Case { burst, .. } in &mut cases {
        burst.count = burst.count.min(if burst.size > 1024 { 20 } else { 100 });
    }
    let mut pair = Pair::start(&cases).expect("start");
    for _ in 0..3 {
        for (at, case) in cases.iter().enumerate() {
            let (ticks, operations) = pair.burst(at).expect("burst");
            let expected = if case.burst.test == Test::OneWay { 1 } else { case.burst.count / case.burst.group };
            assert_eq!(ticks.len(), expected as usize, "{}", case.label());
            assert!(operations == case.burst.group || operations == case.burst.count);
        }
    }
    pair.stop().expect("stop");
}

macro_rules! mechanisms {
    ($($test:ident $name:literal;)*) => {$(
        #[test]
        fn $test() {
            run_all(|case| case.mechanism == $name);
        }
    )*};
}

mechanisms! {
    raw_flag "raw-flag";
    ring "ring";
    bus "bus";
    region "region";
    futex "futex";
    pipe "pipe";
    uds "uds";
    seq_cst "seq-cst";
    memcpy "memcpy";
    pointer "pointer";
}

#[test]
fn all_of_them_in_one_pair() {
    run_all(|_| true);
}

#[test]
fn a_lost_byte_is_noticed() {
    let mut bytes = [0u8; 64];
    crate::channel::fill(&mut bytes, 5);
    let total = crate::channel::sum(&bytes);
    assert_eq!(total, (5..13).sum::<u64>());
    // Messages of seeds 0 and 1.
    let both = (0..8).sum::<u64>() + (1..9).sum::<u64>();
    assert!(crate::channel::verify(both, 64, 2).is_ok());
    assert!(crate::channel::verify(both + 1, 64, 2).is_err());
}

#[test]
fn the_report_is_the_agreed_json() {
    let _alone = alone();
    let mut options = crate::Options::quick();
    options.rounds_for = std::time::Duration::from_millis(50);
    options.filter = Some("rtt".into());
    let mut last = 0;
    let report = crate::run(&options, &mut |progress| {
        assert!(progress.done >= last && progress.done <= progress.total);
        last = progress.done;
    })
    .expect("run");
    assert!(last > 0);
    let json: serde_json::Value = serde_json::to_value(&report).expect("JSON");
    assert!(json["machine"]["cpu"].is_string());
    let rows = json["rows"].as_array().expect("rows");
    let flag = rows.iter().find(|row| row["mechanism"] == "raw-flag").expect("a row");
    assert_eq!(
        (flag["test"].as_str(), flag["mode"].as_str(), flag["size"].as_u64()),
        (Some("rtt"), Some("spin"), Some(8))
    );
    for key in ["p50_ns", "p99_ns", "p999_ns", "min_ns", "msgs_per_s", "bytes_per_s"] {
        assert!(flag[key].as_f64().is_some_and(|value| value > 0.0), "{key}");
    }
    assert_eq!(flag["copied"], false);
    assert!(report.to_string().contains("raw-flag"));
    assert!(json["bars"].as_array().expect("bars").len() == 1);
}

#[test]
fn a_filter_that_matches_nothing_says_so() {
    let mut options = crate::Options::quick();
    options.filter = Some("carrier-pigeon".into());
    let error = crate::run(&options, &mut |_| {}).expect_err("nothing to run");
    assert!(error.to_string().contains("carrier-pigeon"));
}

#[test]
fn bursts_fit_into_what_the_processes_share() {
    for Case { burst: Burst { test, size, count, batch, .. }, capacity, .. } in plan::all() {
        assert!(test != Test::Wake || count as usize <= crate::control::SAMPLES_MAX);
        assert!(size % 8 == 0 && u64::from(batch) * (size as u64 + 16) <= capacity / 2);
    }
}
