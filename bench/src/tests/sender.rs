//! The sending half that workers of other languages ask for.

use super::{alone, directory};
use crate::programs::own_command;
use crate::worker::{PROTOCOL, VARIABLE};
use crate::{Burst, Mode, Test, fill};
use ramway::{Receiver, Ring};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

struct Sending {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Sending {
    fn start(protocol: u32, ring: &Path) -> Self {
        let command = own_command().expect("this program");
        let order = json!({"send": {"protocol": protocol, "ring": ring, "cpu": null, "realtime": false}});
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

    fn burst(&mut self, burst: &Burst, receiver: &mut Receiver) -> Value {
        writeln!(self.input, "{}", json!({"burst": burst})).expect("write");
        let mut expected = vec![0; burst.size];
        for n in 0..burst.count {
            let message = receiver.recv_timeout(Duration::from_secs(30)).expect("a message");
            fill(&mut expected, n % 4096);
            assert_eq!(message[..], expected[..], "message {n} of {burst:?}");
        }
        // The test runner's own lines are not the sender's.
        let line = self.output.by_ref().map(|line| line.expect("a line")).find(|line| line.starts_with('{'));
        serde_json::from_str(&line.expect("an answer")).expect("JSON")
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn streams_arrive_whole_and_in_order() {
    let _alone = alone();
    let directory = directory("sender");
    let name = directory.join("ring");
    let mut receiver = Ring::create(&name).capacity(1 << 16).allow_disk(true).receiver().expect("receiver");
    let mut sending = Sending::start(PROTOCOL, &name);
    let each = Burst::new(Test::OneWay, Mode::Each, 32, 9000);
    let batch = Burst { batch: 1000, ..Burst::new(Test::OneWay, Mode::Batch, 64, 4097) };
    for burst in [each, batch, each] {
        let answer = sending.burst(&burst, &mut receiver);
        let sent = &answer["sent"];
        assert!(sent["began_ns"].as_u64().is_some_and(|ns| ns > 0), "{answer}");
        assert!(sent["cpu_ns"].is_u64() && sent["peak_rss"].as_u64().is_some_and(|bytes| bytes > 0), "{answer}");
    }
    writeln!(sending.input, "{}", json!({"quit": null})).expect("write");
    assert!(sending.child.wait().expect("wait").success());
    std::fs::remove_dir_all(directory).expect("remove");
}

#[test]
fn another_version_of_the_protocol_is_refused() {
    let directory = directory("sender-version");
    let name = directory.join("ring");
    let _receiver = Ring::create(&name).capacity(1 << 12).allow_disk(true).receiver().expect("receiver");
    let mut sending = Sending::start(PROTOCOL + 1, &name);
    assert!(!sending.child.wait().expect("wait").success());
    std::fs::remove_dir_all(directory).expect("remove");
}
