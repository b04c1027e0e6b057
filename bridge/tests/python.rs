//! A client in Python, which has Zenoh and not Ramway, reads a topic and publishes into another one.

mod common;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::bridge::{Bridge, free_port};
use common::net::Net;
use common::{Machine, until};
use ramway::{ErrorKind, Topic};

/// A Python that has the package `eclipse-zenoh`: `RAMWAY_TEST_PYTHON`, the one that `make test` installs it for, or that of the system.
fn python() -> Option<PathBuf> {
    let has_zenoh = |python: &PathBuf| {
        let import =
            Command::new(python).args(["-c", "import zenoh"]).stdin(Stdio::null()).stderr(Stdio::null()).status();
        import.is_ok_and(|status| status.success())
    };
    let named = std::env::var_os("RAMWAY_TEST_PYTHON").map(PathBuf::from);
    // Beside the folder of the profile, below which this test is.
    let target = Path::new(env!("CARGO_BIN_EXE_ramway-bridge")).ancestors().nth(2).expect("a target directory");
    let ours = Some(target.join("python/bin/python3"));
    [named, ours, Some("python3".into())].into_iter().flatten().find(has_zenoh)
}

struct Client(Child);

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The same; a machine that has none is said to be one, and not accepted in CI.
fn python_or_skip() -> Option<PathBuf> {
    let found = python();
    if found.is_none() {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "no Python has the package eclipse-zenoh");
        println!("skipped: no Python has the package eclipse-zenoh (pip install eclipse-zenoh)");
    }
    found
}

#[test]
fn a_client_in_python_reads_one_topic_and_answers_in_another() {
    let Some(python) = python_or_skip() else { return };
    let (machine, endpoint) = (Machine::new("python"), format!("tcp/127.0.0.1:{}", free_port()));
    let rule = |name: &str, direction: &str| {
        format!("[[rule]]\nnames = [\"{name}\"]\nkind = \"topic\"\ndelivery = \"lossy\"\ndirection = \"{direction}\"\n")
    };
    let link = format!("[link]\nlisten = [\"{endpoint}\"]\n");
    let rules = machine.write("bridge.toml", &(link + &rule("question", "export") + &rule("answer", "import")));
    let _bridge = Bridge::start(&machine, &Net::here(), &rules);
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/client.py");
    let arguments = [endpoint.as_str(), "ramway/topic/question/live", "ramway/topic/answer/live"];
    let client = Command::new(python).arg(program).args(arguments).stdin(Stdio::null()).spawn();
    let mut client = Client(client.expect("Python starts"));
    let mut asks = Topic::open_or_create(machine.at("question")).timestamps(true).publisher().expect("a publisher");
    let mut hears = Topic::open_or_create(machine.at("answer")).subscriber().expect("a subscriber");
    let mut number = 0u64;
    until("an answer arrives", || {
        assert!(client.0.try_wait().expect("a child").is_none(), "the client has ended; what it said is above");
        number += 1;
        asks.send_tagged(5, 77, b"who?").expect("published");
        match hears.recv_timeout(Duration::from_millis(100)) {
            Ok(message) => {
                let text = String::from_utf8(message.to_vec()).expect("text");
                let (of, rest) = text.split_once(' ').expect("a number and the rest");
                assert!((1..=number).contains(&of.parse().expect("the number of a question")), "{text}");
                assert_eq!(rest, "5 77 who?");
                true
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
                false
            }
        }
    });
}

/// As a reader has it, but for the way to the bridge: the guide's looks for one in the whole network.
#[test]
fn the_guides_program_prints_what_is_published() {
    let Some(python) = python_or_skip() else { return };
    let (machine, endpoint) = (Machine::new("guide"), format!("tcp/127.0.0.1:{}", free_port()));
    let rule = "[[rule]]\nnames = [\"pose\"]\nkind = \"topic\"\ndelivery = \"lossy\"\ndirection = \"export\"\n";
    let rules = machine.write("bridge.toml", &format!("[link]\nlisten = [\"{endpoint}\"]\n{rule}"));
    let _bridge = Bridge::start(&machine, &Net::here(), &rules);

    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guides/bridge-format.md");
    let page = std::fs::read_to_string(page).expect("docs/guides/bridge-format.md");
    let (_, program) = page.split_once("```python\n").expect("a program");
    let (program, _) = program.split_once("```").expect("its end");
    let way = format!(
        "zenoh.Config.from_json5('{{mode: \"client\", connect: {{endpoints: [\"{endpoint}\"], timeout_ms: -1}}, \
         scouting: {{multicast: {{enabled: false}}}}}}')"
    );
    assert!(program.contains("zenoh.Config()"), "{program}");
    let program = program.replace("zenoh.Config()", &way);

    let client = Command::new(python).args(["-u", "-c", &program]).stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let mut client = Client(client.expect("Python starts"));
    let (lines, heard) = std::sync::mpsc::channel();
    let output = BufReader::new(client.0.stdout.take().expect("a pipe"));
    // Ends with the client.
    std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| lines.send(line)));
    let mut publisher = Topic::open_or_create(machine.at("pose")).publisher().expect("a publisher");
    let mut number = 0u64;
    until("a line is printed", || {
        assert!(client.0.try_wait().expect("a child").is_none(), "the client has ended; what it said is above");
        number += 1;
        publisher.send(1, b"here").expect("published");
        let Ok(line) = heard.recv_timeout(Duration::from_millis(100)) else { return false };
        let (of, payload) = line.split_once(' ').expect("a number and the payload");
        assert!((1..=number).contains(&of.parse().expect("the number of a message")), "{line}");
        assert_eq!(payload, "b'here'");
        true
    });
}
