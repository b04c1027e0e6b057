//! What happens while one of the two machines, its bridge or its receiver is missing: who waits, who is told, and what is counted.

mod common;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::bridge::{Bridge, free_port};
use common::net::Net;
use common::pair::{Pair, local};
use common::{LONG, Machine, Random, message, number, until};
use ramway::{ErrorKind, Receiver, Ring, Sender, Topic};

const MESSAGE: usize = 1000;

fn ring(more: &str) -> String {
    format!("names = [\"way\"]\nkind = \"ring\"\nwindow = \"8K\"\nchunk = \"4K\"\n{more}\n")
}

/// Sends until there is no more room, from this number on; how it ended, and the number that is next.
fn send_until_it_fails(sender: &mut Sender, mut next: u64) -> (ErrorKind, u64) {
    loop {
        match sender.send_timeout(1, &numbered(next), LONG) {
            Ok(()) => next += 1,
            Err(e) => return (e.kind(), next),
        }
    }
}

fn numbered(number: u64) -> Vec<u8> {
    let mut bytes = message(number, MESSAGE);
    bytes.resize(MESSAGE, 0);
    bytes
}

fn number_of(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes"))
}

/// Receives the messages of these numbers, each once and in order. A sender that died has a successor.
fn receive(receiver: &mut Receiver, numbers: std::ops::Range<u64>) {
    for expected in numbers {
        loop {
            match receiver.recv_timeout(LONG).map(|message| number_of(&message)) {
                Ok(number) => break assert_eq!(number, expected),
                Err(e) => {
                    assert_eq!(e.kind(), ErrorKind::PeerDead, "before message {expected}: {e}");
                    receiver.wait_for_peer_timeout(LONG).expect("a bridge comes again");
                }
            }
        }
    }
}

/// Both sides are told, and go on when the link is back: what the far side did not have is still in the near ring.
#[test]
fn a_ring_whose_link_is_down_for_longer_than_the_rule_says_lets_both_sides_go() {
    let (pair, proxy) = Pair::with_proxy(&ring("eject_after = \"3s\""));
    let mut there = Ring::create(pair.far.at("way")).capacity(1 << 20).receiver().expect("a receiver");
    let (_near, _far) = (pair.start_near(), pair.start_far());
    let mut here = Ring::create(pair.near.at("way")).capacity(32 << 10).sender().expect("a sender");
    for number in 0..10 {
        here.send_timeout(1, &numbered(number), LONG).expect("sent");
    }
    receive(&mut there, 0..10);
    proxy.hold(true);
    let (how, next) = send_until_it_fails(&mut here, 10);
    assert_eq!(how, ErrorKind::PeerDead);
    let told = there.recv_timeout(LONG).map(|_| ()).expect_err("nothing has come");
    assert_eq!(told.kind(), ErrorKind::PeerDead);
    assert_eq!(pair.at_near("ramway_bridge_ejections_total"), 1);
    assert_eq!(pair.at_far("ramway_bridge_ejections_total"), 1);
    proxy.hold(false);
    here.wait_for_peer_timeout(LONG).expect("the bridge comes again");
    here.send_timeout(1, &numbered(next), LONG).expect("sent");
    receive(&mut there, 10..next + 1);
}

/// The publisher waits until the rule lets it go; what the far side missed is a gap there, of the length that is counted.
#[test]
fn a_topic_whose_link_is_down_for_longer_than_the_rule_says_goes_on_without_it() {
    let rule = "names = [\"way\"]\nkind = \"topic\"\ndelivery = \"reliable\"\neject_after = \"3s\"\n";
    let (pair, proxy) = Pair::with_proxy(rule);
    let mut there = Topic::open_or_create(pair.far.at("way")).subscriber().expect("a subscriber");
    let (_near, _far) = (pair.start_near(), pair.start_far());
    let mut here = Topic::create(pair.near.at("way")).capacity(64 << 10).publisher().expect("a publisher");
    until("the bridge subscribes", || pair.at_near("ramway_bridge_connected_streams") == 1);
    let mut next = 1;
    let mut publish = |count: u64| {
        for _ in 0..count {
            here.send_timeout(1, &numbered(next), LONG).expect("published");
            next += 1;
        }
        next
    };
    publish(10);
    for expected in 1..11 {
        assert_eq!(number_of(&there.recv_timeout(LONG).expect("it arrives")), expected);
    }
    proxy.hold(true);
    // Ten times what the topic holds.
    publish(640);
    let told = there.recv_timeout(LONG).map(|_| ()).expect_err("nothing has come");
    assert_eq!(told.kind(), ErrorKind::PeerDead);
    proxy.hold(false);
    // What was on its way arrives yet; what is published before the bridge is there again is missed.
    let (mut received, mut last) = (10, 10);
    until("messages arrive after the gap", || {
        publish(1);
        loop {
            let taken = there.recv_timeout(Duration::from_millis(100));
            match taken.map(|message| (message.seq(), number_of(&message))) {
                Ok((seq, number)) => {
                    assert_eq!(seq, number, "it has its number");
                    assert!(number > last, "{number} came after {last}");
                    (received, last) = (received + 1, number);
                }
                Err(e) if e.kind() == ErrorKind::TimedOut => break,
                Err(e) => {
                    assert_eq!(e.kind(), ErrorKind::PeerDead, "{e}");
                    break;
                }
            }
        }
        there.lost() > 0
    });
    assert_eq!(received + there.lost(), last);
    assert!(there.lost() >= 400, "{} are missing", there.lost());
    assert_eq!(pair.at_far("ramway_bridge_lost_messages_total"), there.lost(), "and are counted");
}

/// A process of [`a_far_receiver_that_is_killed_is_told_to_the_near_sender`].
#[test]
#[ignore = "a process of another test"]
fn receives_until_it_is_killed() {
    let path = std::env::var_os("RAMWAY_TEST_RING").expect("the ring");
    let mut receiver = Ring::open(path).receiver().expect("the receiver");
    let first = number_of(&receiver.recv_timeout(LONG).expect("the first message"));
    println!("received {first}");
    std::thread::sleep(LONG);
}

#[test]
fn a_far_receiver_that_is_killed_is_told_to_the_near_sender() {
    let pair = Pair::of(&ring("on_disconnect = \"block\""));
    let (_near, _far) = (pair.start_near(), pair.start_far());
    let mut here = Ring::create(pair.near.at("way")).capacity(32 << 10).sender().expect("a sender");
    let path = pair.far.at("way");
    until("the ring appears", || path.exists());
    let mut process = Command::new(std::env::current_exe().expect("this program"))
        .args(["--ignored", "--exact", "--nocapture", "receives_until_it_is_killed"])
        .env("RAMWAY_TEST_RING", &path)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a receiver");
    here.send_timeout(1, &numbered(0), LONG).expect("sent");
    let mut lines = BufReader::new(process.stdout.take().expect("piped")).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.ends_with("received 0")), "it has received one");
    process.kill().expect("it is killed");
    process.wait().expect("a child");
    // Until both rings are full.
    let (how, next) = send_until_it_fails(&mut here, 1);
    assert_eq!(how, ErrorKind::PeerDead);
    // Another one goes on with all that the first has not released, and the near sender with it.
    let mut there = Ring::open(&path).receiver().expect("a successor");
    receive(&mut there, 1..next);
    here.wait_for_peer_timeout(LONG).expect("the bridge comes again");
    here.send_timeout(1, &numbered(next), LONG).expect("sent");
    receive(&mut there, next..next + 1);
}

/// A ring goes to one machine. The second one that imports it is told of in the log, and gets nothing.
#[test]
fn a_second_importer_of_a_ring_gets_nothing() {
    let pair = Pair::of(&ring("on_disconnect = \"block\""));
    let second = Machine::new("second");
    let text = std::fs::read_to_string(&pair.import).expect("the rules");
    let text = text.replace(&pair.far_metrics.to_string(), &local(free_port()).to_string());
    // The near one listens, and both others connect. The first line of each file that says either is of the link.
    let other = |path: &Path, from: &str, to: &str| {
        let text = std::fs::read_to_string(path).expect("the rules");
        std::fs::write(path, text.replacen(from, to, 1)).expect("the rules");
    };
    let import = second.write("bridge.toml", &text);
    other(&pair.export, "connect =", "listen =");
    other(&pair.import, "listen =", "connect =");
    other(&import, "listen =", "connect =");
    let mut near = pair.start_near();
    let _far = pair.start_far();
    let mut here = Ring::create(pair.near.at("way")).capacity(32 << 10).sender().expect("a sender");
    here.send_timeout(1, &numbered(0), LONG).expect("sent");
    let mut there = pair.far.receiver("way");
    receive(&mut there, 0..1);
    let _second = Bridge::start(&second, &Net::here(), &import);
    near.wait_for("imports it too");
    for number in 1..200 {
        here.send_timeout(1, &numbered(number), LONG).expect("sent");
        receive(&mut there, number..number + 1);
    }
    if let Ok(mut other) = Ring::open(second.at("way")).receiver() {
        let nothing = other.recv_timeout(Duration::from_millis(100)).map(|_| ()).expect_err("nothing comes");
        assert_eq!(nothing.kind(), ErrorKind::TimedOut);
    }
}

/// Two machines whose rules lead in a circle, by two prefixes so that no file is wrong by itself.
#[test]
fn what_was_imported_is_not_exported_again() {
    for delivery in ["delivery = \"lossy\"\n", "delivery = \"reliable\"\non_disconnect = \"block\"\n"] {
        let (first, second, port) = (Machine::new("first"), Machine::new("second"), free_port());
        let rule = |direction: &str, prefix: &str| {
            format!(
                "[[rule]]\nnames = [\"way\"]\nkind = \"topic\"\n{delivery}direction = \"{direction}\"\nprefix = \"{prefix}\"\n"
            )
        };
        let file = |machine: &Machine, link: &str, out: &str, back: &str| {
            let link = format!("[link]\n{link} = [\"tcp/127.0.0.1:{port}\"]\n");
            machine.write("bridge.toml", &(link + &rule("export", out) + &rule("import", back)))
        };
        let files = (file(&first, "connect", "there", "back"), file(&second, "listen", "back", "there"));
        let subscribe =
            |machine: &Machine| Topic::open_or_create(machine.at("way")).subscriber().expect("a subscriber");
        let (mut at_first, mut at_second) = (subscribe(&first), subscribe(&second));
        let mut here = Topic::open_or_create(first.at("way")).publisher().expect("a publisher");
        let _bridges = (Bridge::start(&first, &Net::here(), &files.0), Bridge::start(&second, &Net::here(), &files.1));
        // Until the first arrives, and then some.
        let (mut sent, mut last) = (0, 0);
        let mut publish = |sent: &mut u64| {
            *sent += 1;
            here.send(1, &numbered(*sent)).expect("published");
        };
        until("100 messages have arrived", || {
            publish(&mut sent);
            while let Ok(message) = at_second.recv_timeout(Duration::from_millis(20)) {
                assert!(number_of(&message) > last, "each once, in order: {} after {last}", number_of(&message));
                last = number_of(&message);
            }
            last >= 100
        });
        // Whatever came back would have come after what went there.
        for expected in 1..=sent {
            assert_eq!(number_of(&at_first.recv_timeout(LONG).expect("its own message")), expected);
        }
        let nothing = at_first.recv_timeout(Duration::from_millis(500)).map(|_| ()).expect_err("nothing comes back");
        assert_eq!(nothing.kind(), ErrorKind::TimedOut);
    }
}

/// A lossy topic under kills of either bridge and harm to the link: each message arrives once or is a gap that its readers see.
#[test]
fn of_a_lossy_topic_every_loss_is_counted_whatever_is_killed_or_cut() {
    let (pair, proxy) = Pair::with_proxy("names = [\"log\"]\nkind = \"topic\"\ndelivery = \"lossy\"\n");
    let mut there = Topic::open_or_create(pair.far.at("log")).capacity(1 << 20).subscriber().expect("a subscriber");
    let mut here = Topic::create(pair.near.at("log")).capacity(256 << 10).publisher().expect("a publisher");
    let (mut near, mut far) = (pair.start_near(), pair.start_far());
    let mut random = Random::new();
    let (mut sent, mut received, mut last) = (0u64, 0u64, 0u64);
    for round in 0..number("RAMWAY_TEST_KILLS", 8) {
        let before = received;
        let enough = 1 + random.below(200);
        until("messages arrive", || {
            for _ in 0..20 {
                sent += 1;
                here.send(1, &numbered(sent)).expect("a lossy subscriber stops nobody");
            }
            loop {
                let taken = there.recv_timeout(Duration::from_millis(1));
                match taken.map(|message| (message.seq(), number_of(&message))) {
                    Ok((seq, number)) => {
                        assert_eq!(seq, number, "the number crosses");
                        assert!(number > last, "{number} came after {last}");
                        (received, last) = (received + 1, number);
                        assert_eq!(received + there.lost(), last, "each message before {last} is here or counted");
                    }
                    Err(e) if e.kind() == ErrorKind::TimedOut => break,
                    Err(e) => {
                        assert_eq!(e.kind(), ErrorKind::PeerDead, "{e}");
                        break;
                    }
                }
            }
            received >= before + enough
        });
        match if round < 4 { round } else { random.below(4) } {
            0 => {
                near.kill();
                near = pair.start_near();
            }
            1 => {
                far.kill();
                far = pair.start_far();
            }
            2 => proxy.reset(),
            _ => proxy.half_close(),
        }
    }
    println!("{sent} published, {received} received, {} counted as lost", there.lost());
    // What is lost while no bridge runs there is counted by the next one.
    far.kill();
    while there.recv_timeout(Duration::from_millis(1)).is_ok() {}
    let before = there.lost();
    for _ in 0..50 {
        sent += 1;
        here.send(1, &numbered(sent)).expect("a lossy subscriber stops nobody");
    }
    far = pair.start_far();
    until("a message arrives", || {
        sent += 1;
        here.send(1, &numbered(sent)).expect("a lossy subscriber stops nobody");
        there.recv_timeout(Duration::from_millis(10)).is_ok()
    });
    // Everything that has come is read, or some of what is counted is not yet seen.
    until("the bridge and its readers count the same", || {
        while there.recv_timeout(Duration::from_millis(1)).is_ok() {}
        pair.at_far("ramway_bridge_lost_messages_total") == there.lost() - before
    });
    assert!(there.lost() >= before + 50);
    drop((near, far));
}

/// A far receiver that stops (`RAMWAY_TEST_STALL` seconds; `make stall`): the near sender stops, neither bridge needs more memory, and
/// nothing is lost.
#[test]
fn a_receiver_that_stalls_stops_the_sender_and_costs_no_memory() {
    const WINDOW: u64 = 8 << 20;
    const SLACK: u64 = 4 << 20;
    let pair = Pair::of("names = [\"way\"]\nkind = \"ring\"\non_disconnect = \"block\"\n");
    let (near, far) = (pair.start_near(), pair.start_far());
    let mut here = Ring::create(pair.near.at("way")).capacity(16 << 20).sender().expect("a sender");
    here.send(1, &numbered(0)).expect("sent");
    let mut there = pair.far.receiver("way");
    receive(&mut there, 0..1);
    let empty = [near.anonymous(), far.anonymous()];
    let mut next = 1;
    let mut fill = |next: &mut u64| {
        // No room for this long: everything is full.
        while here.send_timeout(1, &numbered(*next), Duration::from_secs(1)).is_ok() {
            *next += 1;
        }
    };
    fill(&mut next);
    let full = [near.anonymous(), far.anonymous()];
    let stall = Duration::from_secs(number("RAMWAY_TEST_STALL", 3));
    let (end, mut most) = (Instant::now() + stall, full);
    while Instant::now() < end {
        let stood = next;
        fill(&mut next);
        assert_eq!(next, stood, "the sender has no room while nobody receives");
        most = [most[0].max(near.anonymous()), most[1].max(far.anonymous())];
    }
    for (bridge, side) in ["near", "far"].into_iter().enumerate() {
        let (empty, full, most) = (empty[bridge], full[bridge], most[bridge]);
        println!(
            "the {side} bridge's own memory: {} KiB at first, {} KiB full, {} KiB at most in {stall:?}",
            empty >> 10,
            full >> 10,
            most >> 10
        );
        // However long it takes: what is not written yet is bounded by the window, of which late messages may be there twice.
        assert!(most <= empty + 2 * WINDOW + SLACK, "it is bounded");
    }
    receive(&mut there, 1..next);
    let nothing = there.recv_timeout(Duration::from_millis(100)).map(|_| ()).expect_err("that was all");
    assert_eq!(nothing.kind(), ErrorKind::TimedOut);
    println!("{next} messages arrived, each once");
}
