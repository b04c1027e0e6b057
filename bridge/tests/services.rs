//! Buses and RPC through two bridges, with servers and clients as processes.

mod common;

use common::bridge::{Bridge, free_port};
use common::net::Net;
use common::proxy::Proxy;
use common::service::{self, COUNT, ECHO, HOLD, LEFT, Part, RUNS, SHUT_DOWN, bus, client, end_of, patient, socket};
use common::{LONG, Machine, message, until};
use ramway::rpc::CallOptions;
use ramway::{Bus, ErrorKind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Plays the part that this process was started for: see [`service::Part`].
#[test]
fn a_part() {
    service::play();
}

/// A far machine that serves, a near one that calls, and a link between them that can be harmed.
struct Pair {
    /// It serves, and its bridge exports.
    there: Machine,
    /// It calls, and its bridge imports.
    here: Machine,
    export: PathBuf,
    import: PathBuf,
    link: Proxy,
}

const RPC: &str = "names = [\"store\"]\nkind = \"rpc\"\n";
const BUS: &str = "names = [\"echo\"]\nkind = \"bus\"\n";
const BLOCK: &str = "on_disconnect = \"block\"\n";

impl Pair {
    fn new(rule: &str) -> Self {
        let (there, here, port) = (Machine::new("there"), Machine::new("here"), free_port());
        let link = Proxy::start(([127, 0, 0, 1], port).into());
        let text = |link: String, direction: &str| {
            format!("[link]\n{link}\n[[rule]]\n{rule}direction = \"{direction}\"\n")
        };
        let export = there.write("bridge.toml", &text(format!("listen = [\"tcp/127.0.0.1:{port}\"]"), "export"));
        let import = here.write("bridge.toml", &text(format!("connect = [\"tcp/{}\"]", link.address), "import"));
        Self { there, here, export, import, link }
    }

    fn start_there(&self) -> Bridge {
        Bridge::start(&self.there, &Net::here(), &self.export)
    }

    fn start_here(&self) -> Bridge {
        Bridge::start(&self.here, &Net::here(), &self.import)
    }

    fn start(&self) -> (Bridge, Bridge) {
        (self.start_there(), self.start_here())
    }

    fn socket(&self, name: &str) -> PathBuf {
        socket(&self.here, name)
    }
}

#[test]
fn a_bus_crosses_both_ways_with_its_ends() {
    let pair = Pair::new(&format!("{BUS}{BLOCK}"));
    let _server = Part::start(&pair.there, "echo", "echo");
    let _bridges = pair.start();
    let mut bus = bus(&pair.socket("echo"));
    // As the listener there is.
    assert_eq!(bus.sender().expect("both ways").capacity(), 1 << 15);
    assert_eq!(bus.receiver().expect("both ways").capacity(), 1 << 16);
    assert_eq!(bus.sender().expect("both ways").align(), 64);
    for number in 0..2000u64 {
        let bytes = message(number, 9000);
        bus.send_tagged(7, number, &bytes).expect("sent");
        let answer = bus.recv_timeout(LONG).expect("an answer");
        assert_eq!((answer.type_id(), answer.tag()), (7, number));
        assert!(*answer == bytes, "{number}");
    }
    // Half of it is closed: what was sent before is answered, and then the other half closes.
    let (sender, receiver) = bus.split();
    let (mut sender, mut receiver) = (sender.expect("both ways"), receiver.expect("both ways"));
    for number in 0..100u64 {
        sender.send(1, &number.to_le_bytes()).expect("sent");
    }
    sender.close().expect("closed");
    for number in 0..100u64 {
        assert_eq!(*receiver.recv_timeout(LONG).expect("an answer"), number.to_le_bytes());
    }
    assert_eq!(receiver.recv_timeout(LONG).expect_err("over").kind(), ErrorKind::Closed);
}
