//! Rows of agents: what arrives, never how fast. Rust's agent stands on both sides of a row that another language has.

use super::alone;
use crate::agents;
use crate::pair::Pair;
use crate::programs::own_command;
use crate::{Burst, Mode, Options, Test};
use ramway_agents::languages;
use std::collections::BTreeMap;
use std::time::Duration;

/// As a manifest has them: Rust's in the place of C#'s, whose row has one language on both sides, and of Java's.
fn commands() -> agents::Agents {
    let rust = languages::all(&["rust".to_owned()]).expect("it can be built").remove(0).command();
    let command = vec![rust.get_program().into()];
    ["rust", "csharp", "java"].map(|language| (language.to_owned(), command.clone())).into()
}

#[test]
fn agents_say_what_they_can_measure() {
    let names = |agents| {
        let rows = agents::rows(&agents).expect("rows");
        assert!(rows.iter().all(|row| row.what.starts_with("Rust: ")), "the agent says what it is: {rows:?}");
        rows.into_iter().map(|row| row.name).collect::<Vec<_>>()
    };
    let java = ["ring-java", "ring-unguarded-java", "ring-rust-java", "ring-java-rust", "topic-java", "latest-java"];
    let csharp = ["ring-csharp", "topic-csharp", "latest-csharp"];
    assert_eq!(
        names(commands()),
        [
            &java[..],
            &csharp,
            &["rpc-java", "rpc-inline-java"],
            &["rpc-csharp", "rpc-inline-csharp", "rpc-async-csharp"]
        ]
        .concat()
    );
    assert!(agents::rows(&BTreeMap::from([("kotlin".to_owned(), vec!["/nonexistent".into()])])).is_err());
}

#[test]
fn bursts_of_agents_arrive() {
    let _alone = alone();
    let command = agents::command(own_command().expect("this program"), &commands()).expect("JSON");
    let conditions = Options::quick().conditions(false);
    let rtt = Burst { group: 10, ..Burst::new(Test::Rtt, Mode::Block, 32, 200) };
    let each = Burst { group: 100, ..Burst::new(Test::OneWay, Mode::Each, 32, 5000) };
    let batch = Burst { batch: 32, ..Burst { mode: Mode::Batch, ..each } };
    let latest = Burst { group: 10, threads: 0, ..Burst::new(Test::Latest, Mode::Each, 64, 500) };
    let call = Burst { group: 10, ..Burst::new(Test::Call, Mode::Hybrid, 32, 200) };
    let rows = [
        ("ring-csharp", &[rtt, each, batch][..]),
        ("ring-rust-java", &[each, batch]),
        ("topic-java", &[each, batch]),
        ("latest-java", &[latest]),
        ("rpc-java", &[call]),
    ];
    for (row, bursts) in rows {
        let pair = Pair::start(&command, row, 1 << 16, &bursts[0], &conditions).expect("it starts");
        let mut pair = pair.expect("it can");
        assert_eq!(pair.pids.len(), 2);
        for burst in bursts {
            let outcome = pair.burst(burst, Duration::ZERO).expect("it arrives");
            assert_eq!(outcome.operations, burst.count);
            // The publisher of the newest value is idle meanwhile.
            let sides = if burst.test == Test::Latest { 1 } else { 2 };
            let used = |of: [u64; 2]| of.into_iter().filter(|&used| used > 0).count();
            assert!(outcome.elapsed_ps > 0 && [outcome.cpu_ns, outcome.peak_rss].map(used) == [sides; 2]);
            let samples = if matches!(burst.test, Test::Rtt | Test::Call) { 20 } else { 49 };
            assert!(outcome.samples_ps.len() >= samples && outcome.allocated_bytes.is_none(), "{outcome:?}");
        }
        pair.stop().expect("both end");
    }
    // A writer that writes meanwhile is no agent's.
    let written = Burst { threads: 1, ..latest };
    assert!(Pair::start(&command, "latest-java", 1 << 16, &written, &conditions).expect("it starts").is_none());
    let wake = Burst::new(Test::Wake, Mode::Block, 32, 10);
    assert!(Pair::start(&command, "ring-csharp", 1 << 16, &wake, &conditions).expect("it starts").is_none());
    let gone = BTreeMap::from([("csharp".to_owned(), vec!["/nonexistent/agent".into()])]);
    let command = agents::command(own_command().expect("this program"), &gone).expect("JSON");
    let failure = Pair::start(&command, "ring-csharp", 1 << 16, &rtt, &conditions).err().expect("there is none");
    assert!(failure.to_string().contains("/nonexistent/agent"), "{failure}");
}
