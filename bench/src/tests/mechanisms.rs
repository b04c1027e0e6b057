//! Every mechanism in every group that it can, for a moment.

use super::alone;
use crate::pair::Pair;
use crate::plan::{self, Plan};
use crate::{Burst, Options, mechanism, programs};
use std::time::Duration;

/// What the plans ask of a mechanism, small enough for a test: each kind of burst once.
fn bursts(name: &str) -> Vec<(Burst, u64)> {
    let mechanism = mechanism::find(name).expect("a mechanism of this crate");
    let mut bursts: Vec<(Burst, u64)> = Vec::new();
    for group in plan::groups(Plan::Full) {
        let Some(candidate) = group.candidates.iter().find(|candidate| candidate.mechanism == name) else { continue };
        let possible = std::iter::once(group.burst).chain(group.others).find(|burst| mechanism.can(burst));
        let Some(burst) = possible.filter(|burst| burst.size <= 4 << 20) else { continue };
        let least = 4 * u64::from(burst.batch);
        let burst = Burst { count: least.max(12), group: 1, gap_ns: burst.gap_ns.min(1_000_000), ..burst };
        if !bursts.iter().any(|(known, _)| *known == burst) {
            bursts.push((burst, candidate.capacity));
        }
    }
    bursts
}

fn each_burst_arrives(name: &str) {
    let _alone = alone();
    let known = programs::all(None).expect("programs").into_iter().find(|known| known.about.name == name);
    let command = known.expect("known").command.expect("a program");
    let options = Options::quick();
    let bursts = bursts(name);
    assert!(!bursts.is_empty(), "{name} is in no group");
    for (burst, capacity) in bursts {
        let conditions = options.conditions(false);
        let what = format!("{name}, {burst:?}");
        let pair = Pair::start(&command, name, capacity, &burst, &conditions);
        let mut pair = pair.expect(&what).expect(&what);
        for _ in 0..2 {
            let outcome = pair.burst(&burst, Duration::from_secs(1)).expect(&what);
            assert_eq!(outcome.operations, burst.count);
            assert!(outcome.elapsed_ps > 0, "{what}");
            assert!(outcome.samples_ps.len() as u64 <= burst.count, "{what}");
            assert!(outcome.peak_rss.iter().all(|&bytes| bytes > 0), "{what}");
        }
        pair.stop().expect(&what);
    }
}

macro_rules! mechanisms {
    ($($test:ident $name:literal;)*) => {
        $(
            #[test]
            fn $test() {
                each_burst_arrives($name);
            }
        )*

        #[test]
        fn none_is_left_out() {
            let tested = [$($name),*];
            for mechanism in mechanism::ALL {
                let name = mechanism.about().name;
                assert!(tested.contains(&name.as_str()), "{name} has no test here");
            }
        }
    };
}

mechanisms! {
    raw_flag "raw-flag";
    futex "futex";
    seq_cst "seq-cst";
    pointer "pointer";
    memcpy "memcpy";
    ring "ring";
    ring_copy "ring-copy";
    bus "bus";
    region "region";
    pipe "pipe";
    uds "uds";
}
