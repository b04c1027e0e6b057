//! `make -C bench/peers test`: every peer that was built, in every group that it can, for one round. Each message is
//! verified by the loops themselves; here it is said who failed, and that messages were counted: some arrived, and no more than
//! were sent. No other figure is looked at.

use ramway_bench::{Options, Plan, Row, catalogue, run};
use std::process::ExitCode;
use std::time::Duration;

const PEERS: [&str; 17] = [
    "tachyon",
    "iceoryx2",
    "mmap-sync",
    "ipc-ring",
    "ipmpsc",
    "ipc-channel",
    "zmq",
    "tonic",
    "redis",
    "rtrb",
    "zeropool",
    "zeropool-safe",
    "zeropool-0.2",
    "lifeguard",
    "opool",
    "object-pool",
    "sharded-slab",
];

/// Of other languages those that are between many processes, and those that call, where they were built.
const ELSEWHERE: [&str; 19] = [
    "topic-python",
    "topic-latest-python",
    "inbox-python",
    "queues-python",
    "pipes-python",
    "shared-lock-python",
    "grpc-aio-python",
    "grpc-python",
    "grpc-go",
    "grpc-java",
    "grpc-node",
    "rpc-python",
    "rpc-async-python",
    "rpc-go",
    "rpc-java",
    "rpc-inline-java",
    "rpc-csharp",
    "rpc-inline-csharp",
    "rpc-async-csharp",
    "rpc-node",
];

/// What is wrong with a row.
fn failure(row: &Row) -> Option<String> {
    let Some(figures) = &row.figures else { return row.failure.clone().or_else(|| Some("no figures".into())) };
    if figures.operations == 0 || figures.rounds_ns.is_empty() || !(figures.ops_per_s > 0.0) {
        return Some(format!("{} operations, {} a second", figures.operations, figures.ops_per_s));
    }
    let share = figures.ratios.iter().find(|(name, _)| name == "received / sent");
    share.filter(|(_, share)| !(*share > 0.0 && *share <= 1.0)).map(|(name, share)| format!("{name} is {share}"))
}

fn main() -> Result<ExitCode, ramway_bench::Failure> {
    if let Some(code) = ramway_bench::child_main_builtin() {
        std::process::exit(code);
    }
    let mut arguments = std::env::args().skip(1);
    let manifests = arguments.next().ok_or("the directory of the manifests, and PEER... if not all")?;
    let mut wanted: Vec<String> = arguments.collect();
    if wanted.is_empty() {
        let known = catalogue(Some(manifests.as_ref()))?.mechanisms;
        let built = |name: &&str| known.iter().any(|one| one.about.name == **name && one.missing.is_none());
        wanted = PEERS.iter().copied().chain(ELSEWHERE.iter().copied().filter(built)).map(String::from).collect();
    }
    let (mut passed, mut failed) = (0, 0);
    for peer in wanted {
        // 64 MiB belong to the largest plan only; most of the rest of that would take long.
        let runs = [(Plan::Standard, format!("/{peer}")), (Plan::Full, format!("one-way-64M-each/{peer}"))];
        for (plan, only) in runs {
            let mut options = Options::new(plan);
            options.only = vec![only];
            options.peers = Some((&manifests).into());
            options.rounds = Some(1);
            options.group_time = Some(Duration::from_millis(200));
            // What takes longer than this beside other work hangs.
            options.wait_max = Duration::from_secs(20);
            let rows = match run(&options, &mut |_| {}) {
                Ok(report) => report.rows,
                // It takes part in none of these.
                Err(_) if plan == Plan::Full => continue,
                Err(error) => {
                    println!("{peer}: {error}");
                    failed += 1;
                    continue;
                }
            };
            for row in rows {
                match failure(&row) {
                    None => passed += 1,
                    Some(why) => {
                        println!("{}: {why}", row.id);
                        failed += 1;
                    }
                }
            }
        }
    }
    println!("{passed} passed, {failed} failed");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
