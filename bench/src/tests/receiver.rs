//! The receiving half that workers of other languages ask for.

use super::{alone, directory};
use crate::programs::own_command;
use crate::worker::{PROTOCOL, VARIABLE};
use crate::{Burst, Mode, Test, fill};
use ramway::{Ring, Sender};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

struct Receiving {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Receiving {
    fn start(ring: &Path) -> Self {
        let command = own_command().expect("this program");
        let order = json!({"receive": {"protocol": PROTOCOL, "ring": ring, "cpu": null, "realtime": false}});
        let mut child = Command::new(&command[0])
            .args(&command[1..])
            .env(VARIABLE, order.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("start");
        let input = child.stdin.take().expect("piped");
        let output = BufReader::new(child.stdout.take().expect("piped")).lines();
        Self { child, input, output }
    }

    fn begin(&mut self, burst: &Burst) {
        writeln!(self.input, "{}", json!({"burst": burst})).expect("write");
        assert_eq!(self.hear(), Some(json!({"receiving": null})));
    }

    /// The test runner's own lines are not the receiver's.
    fn hear(&mut self) -> Option<Value> {
        let line = self.output.by_ref().map(|line| line.expect("a line")).find(|line| line.starts_with('{'))?;
        Some(serde_json::from_str(&line).expect("JSON"))
    }
}

impl Drop for Receiving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn send(sender: &mut Sender, size: usize, seed: u64) {
    let mut slot = sender.reserve(size).expect("room");
    fill(&mut slot, seed);
    slot.commit(size).expect("commit");
}

#[test]
fn what_arrives_is_compared() {
    let _alone = alone();
    let directory = directory("receiver");
    let name = directory.join("ring");
    let mut sender = Ring::create(&name).capacity(1 << 16).allow_disk(true).sender().expect("sender");
    let mut receiving = Receiving::start(&name);
    let each = Burst::new(Test::OneWay, Mode::Each, 32, 9000);
    let batch = Burst { batch: 1000, ..Burst::new(Test::OneWay, Mode::Batch, 64, 4097) };
    for burst in [each, batch, each] {
        receiving.begin(&burst);
        for n in 0..burst.count {
            send(&mut sender, burst.size, n % 4096);
        }
        let answer = receiving.hear().expect("an answer");
        assert!(answer["received"]["ended_ns"].as_u64().is_some_and(|ns| ns > 0), "{answer}");
    }
    // The second and third are exchanged.
    receiving.begin(&Burst { count: 3, ..each });
    for n in [0, 2, 1] {
        send(&mut sender, each.size, n);
    }
    assert_eq!(receiving.hear(), None);
    assert!(!receiving.child.wait().expect("wait").success());
    std::fs::remove_dir_all(directory).expect("remove");
}
