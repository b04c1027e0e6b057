//! A ring and a bus between two real processes, without anything that only Linux has: what `make test-macos` runs there beside the
//! tests within one process. The thorough tests of the same things are `ring.rs`, `bus.rs` and `lifecycle_death.rs`.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use ramway::{Bus, ErrorKind, Listener, Ring};

#[path = "../src/runner.rs"]
mod runner;

/// Longer than anything here takes, however busy the machine is.
const LONG: Duration = Duration::from_secs(60);
const ROLE: &str = "RAMWAY_TEST_TWO_PROCESSES";

/// A folder for the names of one test, and what the other process is told of it.
struct Names(PathBuf);

impl Names {
    fn new(test: &str) -> Self {
        // In memory where the system has that. Short, because a socket's path is: `env::temp_dir()` is long on macOS.
        let base = if Path::new("/dev/shm").is_dir() { "/dev/shm" } else { "/tmp" };
        let path = PathBuf::from(format!("{base}/ramway-two-{}-{test}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// This program once more, as another process that plays the role.
    fn start(&self, role: &str) -> Child {
        let mut command = runner::again();
        command.args(["helper", "--exact", "--nocapture"]).env(ROLE, format!("{role} {}", self.0.display()));
        // Its own summary is no test's: only what a failure says is of use.
        command.stdout(Stdio::null()).spawn().unwrap()
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Plays a role in another test's process; passes at once when it is not told to.
#[test]
fn helper() {
    let Ok(told) = env::var(ROLE) else { return };
    let (role, folder) = told.split_once(' ').unwrap();
    let name = Path::new(folder).join("name");
    match role {
        "send" => {
            let mut sender = Ring::open_or_create(name).sender().unwrap();
            for number in 0..100_000_u32 {
                sender.send_timeout(number, &number.to_le_bytes(), LONG).unwrap();
            }
            sender.close().unwrap();
        }
        "die" => {
            let mut sender = Ring::open_or_create(name).sender().unwrap();
            sender.send(7, b"committed").unwrap();
            std::process::abort();
        }
        "echo" => {
            let mut bus = Bus::connect(name).unwrap();
            loop {
                let (type_id, text) = match bus.recv_timeout(LONG) {
                    Ok(message) => (message.type_id(), message.to_vec()),
                    Err(error) => break assert_eq!(error.kind(), ErrorKind::Closed, "{error}"),
                };
                bus.send_timeout(type_id + 1, &text, LONG).unwrap();
            }
        }
        other => panic!("no such role: {other}"),
    }
}

#[test]
fn a_ring_carries_everything_in_order() {
    let names = Names::new("ring");
    let mut receiver = Ring::open_or_create(names.path("name")).receiver().unwrap();
    let mut child = names.start("send");
    for number in 0..100_000_u32 {
        let message = receiver.recv_timeout(LONG).unwrap();
        assert_eq!((message.type_id(), &*message), (number, &number.to_le_bytes()[..]));
    }
    assert_eq!(receiver.recv_timeout(LONG).unwrap_err().kind(), ErrorKind::Closed);
    assert!(child.wait().unwrap().success());
}

#[test]
fn what_a_process_committed_before_it_died_is_received_and_then_its_death() {
    let names = Names::new("death");
    let mut receiver = Ring::open_or_create(names.path("name")).receiver().unwrap();
    let mut child = names.start("die");
    assert_eq!(&*receiver.recv_timeout(LONG).unwrap(), b"committed");
    assert_eq!(receiver.recv_timeout(LONG).unwrap_err().kind(), ErrorKind::PeerDead);
    assert!(!child.wait().unwrap().success());
}

#[test]
fn a_bus_goes_both_ways() {
    let names = Names::new("bus");
    let listener = Listener::bind(names.path("name")).unwrap();
    let mut child = names.start("echo");
    let mut bus = listener.accept_timeout(LONG).unwrap();
    for number in 0..10_000_u32 {
        bus.send_timeout(number, b"there and back", LONG).unwrap();
        let message = bus.recv_timeout(LONG).unwrap();
        assert_eq!((message.type_id(), &*message), (number + 1, &b"there and back"[..]));
    }
    bus.close().unwrap();
    assert!(child.wait().unwrap().success());
}
