//! Every mechanism in every group that it can, for a moment.

use super::alone;
use crate::pair::Pair;
use crate::plan::{self, Plan};
use crate::{Burst, Options, Test, mechanism, programs};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const LARGEST: usize = 4 << 20;

fn memory(burst: &Burst) -> bool {
    burst.test.is_access() || matches!(burst.test, Test::PoolGet | Test::PoolAlternate)
}

/// What the plans ask of a mechanism, small enough for a test: each kind of burst once.
fn bursts(name: &str) -> Vec<(Burst, u64)> {
    let mechanism = mechanism::find(name).expect("a mechanism of this crate");
    let mut bursts: Vec<(Burst, u64)> = Vec::new();
    for group in plan::groups(Plan::Full) {
        let Some(candidate) = group.candidates.iter().find(|candidate| candidate.mechanism == name) else { continue };
        let possible = std::iter::once(group.burst).chain(group.others).find(|burst| mechanism.can(burst));
        let Some(mut burst) = possible else { continue };
        if memory(&burst) {
            burst.size = burst.size.min(LARGEST);
        }
        if burst.size > LARGEST {
            continue;
        }
        let least = 4 * u64::from(burst.batch);
        let burst = Burst { count: least.max(12), group: 1, gap_ns: burst.gap_ns.min(1_000_000), ..burst };
        if !bursts.iter().any(|(known, _)| *known == burst) {
            bursts.push((burst, candidate.capacity));
        }
    }
    bursts
}

fn each_burst_arrives(name: &str) {
    each_burst_arrives_or(name, None);
}

/// `excuse`: part of what it says on a machine that does not have what it needs.
fn each_burst_arrives_or(name: &str, excuse: Option<&str>) {
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
        let mut pair = match (pair, excuse) {
            (Err(cause), Some(excuse)) if cause.to_string().contains(excuse) => {
                eprintln!("{name} is not tested here: {cause}");
                return;
            }
            (pair, _) => pair.expect(&what).expect(&what),
        };
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

/// `libramway.so` beside this program's directory, as a build of everything leaves it there.
fn build_library() {
    let program = std::env::current_exe().expect("this program");
    let profile = program.parent().and_then(Path::parent).expect("target/PROFILE/deps");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "-p", "ramway-capi", "--manifest-path"]);
    cargo.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml"));
    cargo.arg("--target-dir").arg(profile.parent().expect("target"));
    if profile.ends_with("release") {
        cargo.arg("--release");
    }
    assert!(cargo.status().expect("cargo").success());
}

macro_rules! mechanisms {
    ($($test:ident $name:literal;)*) => {
        $(
            #[test]
            fn $test() {
                each_burst_arrives($name);
            }
        )*

        /// As huge as the machine's settings allow.
        #[test]
        fn huge_pages() {
            each_burst_arrives_or("private-huge", Some("transparent_hugepage"));
            each_burst_arrives_or("region-huge", Some("transparent_hugepage"));
        }

        /// By the library of this profile, which is built if nobody has.
        #[test]
        fn bus_c() {
            build_library();
            each_burst_arrives("bus-c");
        }

        #[test]
        fn none_is_left_out() {
            let tested = [$($name,)* "private-huge", "region-huge", "bus-c"];
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
    rpc "rpc";
    rpc_in_place "rpc-in-place";
    region "region";
    pipe "pipe";
    uds "uds";
    uds_epoll "uds-epoll";
    seqpacket "seqpacket";
    tcp "tcp";
    mqueue "mqueue";
    eventfd "eventfd";
    hand_ring "hand-ring";
    uring_futex "uring-futex";
    mutex_ring "mutex-ring";
    shm_by_hand "shm-by-hand";
    ring_disk "ring-disk";
    bus_tokio "bus-tokio";
    private "private";
    region_map "region-map";
    pool "pool";
    hand_stack "hand-stack";
    malloc "malloc";
    bytes "bytes";
    vec_zeroed "vec-zeroed";
    topic "topic";
    topic_readers "topic-readers";
    topic_latest "topic-latest";
    topic_latest_into "topic-latest-into";
    topic_lossy "topic-lossy";
    topic_reliable_1 "topic-reliable-1";
    topic_reliable_8 "topic-reliable-8";
    topic_reliable_64 "topic-reliable-64";
    topic_lossy_1 "topic-lossy-1";
    topic_lossy_8 "topic-lossy-8";
    topic_lossy_64 "topic-lossy-64";
    topic_alone "topic-alone";
    hand_seqlock "hand-seqlock";
    futex_all "futex-all";
    select_1 "select-1";
    select_16 "select-16";
    select_128 "select-128";
    select_mixed_128 "select-mixed-128";
    inbox_10 "inbox-10";
    rings_10 "rings-10";
    inbox_4 "inbox-4";
    rings_4 "rings-4";
    epoll_16 "epoll-16";
    epoll_128 "epoll-128";
}
