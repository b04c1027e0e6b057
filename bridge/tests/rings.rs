//! Rings through two bridges, as processes, over links that are cut, reset and slow, and with bridges that are killed.

mod common;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::Duration;

use common::bridge::{Bridge, free_port};
use common::certificates::{Authority, Files};
use common::net::{Cable, Net};
use common::proxy::Proxy;
use common::traffic::Traffic;
use common::{Machine, Random, number, until};
use zenoh::Wait;

const RING: &str = "[[rule]]\nnames = [\"camera\"]\nkind = \"ring\"\non_disconnect = \"block\"\n";

/// The file of rules of one side.
fn rules(machine: &Machine, direction: &str, link: &str) -> PathBuf {
    machine.write("bridge.toml", &format!("[link]\n{link}\n{RING}direction = \"{direction}\"\n"))
}

/// A near and a far machine with a file of rules each.
struct Pair {
    near: Machine,
    far: Machine,
    export: PathBuf,
    import: PathBuf,
    nets: (Net, Net),
}

impl Pair {
    /// Each with these lines about its link.
    fn new(near_link: &str, far_link: &str) -> Self {
        let (near, far) = (Machine::new("near"), Machine::new("far"));
        let (export, import) = (rules(&near, "export", near_link), rules(&far, "import", far_link));
        Self { near, far, export, import, nets: (Net::here(), Net::here()) }
    }

    /// The near one connects to `to`, the far one listens on `listens`.
    fn tcp(to: SocketAddr, listens: SocketAddr) -> Self {
        Self::new(&format!("connect = [\"tcp/{to}\"]"), &format!("listen = [\"tcp/{listens}\"]"))
    }

    fn start_near(&self) -> Bridge {
        Bridge::start(&self.near, &self.nets.0, &self.export)
    }

    fn start_far(&self) -> Bridge {
        Bridge::start(&self.far, &self.nets.1, &self.import)
    }

    fn traffic(&self) -> Traffic {
        Traffic::start(&self.near, &self.far, "camera")
    }
}

/// A process of zenohd, which is killed in the end.
struct Router(Child);

impl Drop for Router {
    fn drop(&mut self) {
        self.0.kill().expect("zenohd runs");
        self.0.wait().expect("a child");
    }
}

fn local(port: u16) -> SocketAddr {
    ([127, 0, 0, 1], port).into()
}

#[test]
fn a_ring_crosses() {
    let port = local(free_port());
    let pair = Pair::tcp(port, port);
    let (_near, _far) = (pair.start_near(), pair.start_far());
    let traffic = pair.traffic();
    traffic.wait_for_more(200);
    assert_eq!(traffic.finish().doubled, 0);
}

/// Who shows a certificate that another authority has signed is not linked, though it takes the other side's for good.
#[test]
fn certificates_decide_who_is_linked() {
    let port = local(free_port());
    let proxy = Proxy::start(port);
    let (ours, theirs) = (Authority::new(), Authority::new());
    let pair = Pair::new("", "");
    let sign = |by: &Authority, machine: &Machine, name: &str| by.sign(machine, name, &["127.0.0.1"]);
    let at_far = sign(&ours, &pair.far, "far");
    let stranger = Files { ca: at_far.ca.clone(), ..sign(&theirs, &pair.near, "stranger") };
    let friend = sign(&ours, &pair.near, "near");
    let connect = format!("connect = [\"tls/{}\"]\n", proxy.address);
    rules(&pair.far, "import", &format!("listen = [\"tls/{port}\"]\n{}", at_far.section()));
    rules(&pair.near, "export", &(connect.clone() + &stranger.section()));
    let mut far = pair.start_far();
    far.wait_for("is up");
    let stranger = pair.start_near();
    let traffic = pair.traffic();
    // It tries again and again.
    until("the stranger has been turned away twice", || proxy.connections() >= 3);
    assert!(!pair.far.at("camera").exists(), "something of a stranger has arrived");
    stranger.kill();
    rules(&pair.near, "export", &(connect + &friend.section()));
    let _near = pair.start_near();
    traffic.wait_for_more(20);
    traffic.finish();
}

/// The same certificates over UDP: messages of several pieces, and a bridge that is killed.
#[test]
fn a_ring_crosses_over_quic() {
    let port = local(free_port());
    let ours = Authority::new();
    let pair = Pair::new("", "");
    let sign = |machine: &Machine, name: &str| ours.sign(machine, name, &["127.0.0.1"]).section();
    rules(&pair.far, "import", &format!("listen = [\"quic/{port}\"]\n{}", sign(&pair.far, "far")));
    rules(&pair.near, "export", &format!("connect = [\"quic/{port}\"]\n{}", sign(&pair.near, "near")));
    let (mut far, near) = (pair.start_far(), pair.start_near());
    far.wait_for("is up");
    let traffic = pair.traffic();
    traffic.wait_for_more(200);
    near.kill();
    let _near = pair.start_near();
    traffic.wait_for_more(200);
    assert_eq!(traffic.finish().doubled, 0);
}

/// Both bridges are clients of a router, which Zenoh's own program is as well.
#[test]
fn a_ring_crosses_by_a_router() {
    let port = local(free_port());
    let mut config = zenoh::Config::default();
    config.insert_json5("mode", "\"router\"").unwrap();
    config.insert_json5("listen/endpoints", &format!("[\"tcp/{port}\"]")).unwrap();
    config.insert_json5("scouting/multicast/enabled", "false").unwrap();
    let router = zenoh::open(config).wait().unwrap();
    let link = format!("mode = \"client\"\nconnect = [\"tcp/{port}\"]");
    let pair = Pair::new(&link, &link);
    let (_near, _far) = (pair.start_near(), pair.start_far());
    let traffic = pair.traffic();
    traffic.wait_for_more(200);
    assert_eq!(traffic.finish().doubled, 0);
    router.close().wait().unwrap();
}

/// Zenoh's own router as a process, that is killed and comes back: a program of its own that `make router` builds.
#[test]
#[ignore = "needs zenohd, whose path RAMWAY_TEST_ZENOHD says: `make router`"]
fn a_ring_crosses_by_zenohd_which_is_killed_and_comes_back() {
    let program = std::env::var_os("RAMWAY_TEST_ZENOHD").expect("RAMWAY_TEST_ZENOHD says where zenohd is");
    let port = local(free_port());
    let start = || {
        let arguments = ["--listen", &format!("tcp/{port}"), "--no-multicast-scouting"];
        Router(Command::new(&program).args(arguments).spawn().expect("zenohd starts"))
    };
    let mut router = start();
    let link = format!("mode = \"client\"\nconnect = [\"tcp/{port}\"]");
    let pair = Pair::new(&link, &link);
    let (_near, _far) = (pair.start_near(), pair.start_far());
    let traffic = pair.traffic();
    traffic.wait_for_more(200);
    for _ in 0..3 {
        drop(router);
        router = start();
        traffic.wait_for_more(200);
    }
    assert_eq!(traffic.finish().doubled, 0);
}

/// The cable is taken out (`RAMWAY_TEST_OUTAGE` seconds, 30 in a release's tests) and put back.
#[test]
fn a_cable_that_is_cut_stops_the_sender_and_loses_nothing() {
    let Some(cable) = Cable::new() else { return };
    let mut pair = Pair::new(
        &format!("connect = [\"tcp/{}:7447\"]", cable.far.address),
        &format!("listen = [\"tcp/{}:7447\"]", cable.far.address),
    );
    pair.nets = (cable.near.clone(), cable.far.clone());
    let (_near, _far) = (pair.start_near(), pair.start_far());
    let traffic = pair.traffic();
    traffic.wait_for_more(100);
    for _ in 0..2 {
        cable.cut();
        traffic.wait_for_standstill(Duration::from_secs(number("RAMWAY_TEST_OUTAGE", 2)));
        cable.mend();
        traffic.wait_for_more(100);
    }
    assert_eq!(traffic.finish().doubled, 0);
}

#[test]
fn a_link_that_is_reset_held_and_slow_loses_nothing() {
    let port = local(free_port());
    let proxy = Proxy::start(port);
    let pair = Pair::tcp(proxy.address, port);
    let (_near, _far) = (pair.start_near(), pair.start_far());
    let traffic = pair.traffic();
    traffic.wait_for_more(20);
    let mut random = Random::new();
    for round in 0..number("RAMWAY_TEST_RESETS", 8) {
        // Each of them once, then any.
        match if round < 5 { round } else { random.below(5) } {
            0 => proxy.reset(),
            1 => proxy.half_close(),
            2 => {
                proxy.hold(true);
                traffic.wait_for_standstill(Duration::from_millis(300));
                proxy.hold(false);
            }
            3 => {
                proxy.throttle(4 << 20);
                traffic.wait_for_more(10);
                proxy.throttle(0);
            }
            _ => {
                proxy.delay(Duration::from_millis(20));
                traffic.wait_for_more(10);
                proxy.delay(Duration::ZERO);
            }
        }
        traffic.wait_for_more(random.below(50) + 1);
    }
    assert_eq!(traffic.finish().doubled, 0);
}

/// Either bridge, at any moment (`RAMWAY_TEST_KILLS` times; `make kills`).
#[test]
fn bridges_that_are_killed_lose_nothing() {
    let port = local(free_port());
    let pair = Pair::tcp(port, port);
    let (mut near, mut far) = (pair.start_near(), pair.start_far());
    let traffic = pair.traffic();
    let mut random = Random::new();
    let kills = number("RAMWAY_TEST_KILLS", 6);
    for kill in 0..kills {
        traffic.wait_for_more(random.below(100) + 1);
        if random.below(2) == 0 {
            near.kill();
            near = pair.start_near();
        } else {
            far.kill();
            far = pair.start_far();
        }
        if kill % 20 == 19 {
            println!("{} of {kills} kills", kill + 1);
        }
    }
    let received = traffic.finish();
    println!("{kills} kills: {} messages, {} of them twice", received.messages, received.doubled);
    drop((near, far));
}
