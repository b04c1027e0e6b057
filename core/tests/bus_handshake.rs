//! Hostile handshakes, one a test: the other side is told or left, nothing leaks, and the next one is served.

mod support;

use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use ramway::{Bus, ErrorKind, Listener};
use rustix::fs::SealFlags;
use support::raw::{self, ACK, HELLO, REFUSE, WELCOME};
use support::{Dir, LONG, Peer, argument, descriptors, helper_role};

/// Every test below runs in a process of its own, because it counts its descriptors.
#[test]
fn helper() {
    let Some(role) = helper_role() else { return };
    match role[0].as_str() {
        "hostile connector" => hostile_connector(&argument()),
        "hostile listener" => hostile_listener(&argument()),
        other => panic!("no such role: {other}"),
    }
}

macro_rules! connector_tests {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            Peer::start(&["hostile connector", stringify!($name)]).finish();
        }
    )*};
}

connector_tests! {
    connector_sends_garbage
    connector_sends_half_a_hello_and_hangs_up
    connector_sends_half_a_hello_and_goes_silent
    connector_goes_silent
    connector_hangs_up_at_once
    connector_sends_hello_with_a_descriptor
    connector_sends_hello_with_sixteen_descriptors
    connector_speaks_a_later_version
    connector_requires_an_unknown_feature
    connector_begins_with_an_ack
    connector_vanishes_after_welcome
    connector_goes_silent_after_welcome
    connector_acknowledges_with_an_error
    connector_acknowledges_with_garbage
    connector_acknowledges_with_a_descriptor
    connector_drips_single_bytes
}

/// One hostile connector, then a good one, at a listener with a short time-out.
fn hostile_connector(name: &str) {
    let dir = Dir::new();
    let timeout = Duration::from_millis(300);
    let listener = Listener::builder(dir.join("l")).capacity(4096).handshake_timeout(timeout).bind().unwrap();
    let serve_a_good_one = || {
        let path = listener.path().to_owned();
        let good = std::thread::spawn(move || Bus::connect(path).unwrap());
        let mut bus = listener.accept_timeout(LONG).unwrap();
        let mut other = good.join().unwrap();
        other.send(1, b"good").unwrap();
        assert_eq!(&*bus.recv_timeout(LONG).unwrap(), b"good");
    };
    serve_a_good_one();
    let before = descriptors();
    let path = listener.path().to_owned();
    let what = name.to_owned();
    let hostile = std::thread::spawn(move || misbehave_as_connector(&raw::connect(&path), &what));
    // The hostile one gets no bus, whatever it does, and the listener comes to no harm.
    while !hostile.is_finished() {
        let error = listener.accept_timeout(Duration::from_millis(20)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    }
    let expected = hostile.join().unwrap();
    let deadline = Instant::now() + LONG;
    while listener.refused() == 0 && Instant::now() < deadline {
        let error = listener.accept_timeout(Duration::from_millis(20)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    }
    let said = listener.last_refusal().expect("a refusal");
    assert!(said.contains(expected), "'{said}' does not say '{expected}'");
    assert_eq!(listener.refused(), 1);
    assert_eq!(descriptors(), before, "leaked");
    serve_a_good_one();
    assert_eq!(descriptors(), before, "leaked");
}

/// Does the wrong thing, checks what it is told, and gives what the listener's own account must say.
fn misbehave_as_connector(socket: &UnixStream, what: &str) -> &'static str {
    let hello = raw::message(HELLO, 0, 0);
    let changed = |at: usize, value: u8| {
        let mut bytes = hello;
        bytes[at] = value;
        bytes
    };
    let null = raw::no_memfd();
    let refused_for = |kind: ErrorKind| {
        assert_eq!(raw::refusal(socket), kind.code() as u32);
        raw::wait_for_the_end(socket);
    };
    match what {
        "connector_sends_garbage" => {
            raw::send(socket, &[0xEE; 4096]);
            refused_for(ErrorKind::AbiMismatch);
            "does not speak"
        }
        "connector_sends_half_a_hello_and_hangs_up" => {
            raw::send(socket, &hello[..32]);
            socket.shutdown(std::net::Shutdown::Both).unwrap();
            "32 of the 64 bytes of HELLO"
        }
        "connector_sends_half_a_hello_and_goes_silent" => {
            raw::send(socket, &hello[..32]);
            refused_for(ErrorKind::TimedOut);
            "32 of the 64 bytes of HELLO"
        }
        "connector_goes_silent" => {
            refused_for(ErrorKind::TimedOut);
            "0 of the 64 bytes of HELLO"
        }
        "connector_hangs_up_at_once" => {
            socket.shutdown(std::net::Shutdown::Both).unwrap();
            "hung up"
        }
        "connector_sends_hello_with_a_descriptor" => {
            raw::send_with(socket, &hello, &[null.as_fd()]);
            refused_for(ErrorKind::Corrupt);
            "1 descriptors"
        }
        "connector_sends_hello_with_sixteen_descriptors" => {
            raw::send_with(socket, &hello, &[null.as_fd(); 16]);
            refused_for(ErrorKind::Corrupt);
            "descriptors"
        }
        "connector_speaks_a_later_version" => {
            raw::send(socket, &changed(0x0C, 2));
            refused_for(ErrorKind::AbiMismatch);
            "version 2"
        }
        "connector_requires_an_unknown_feature" => {
            raw::send(socket, &changed(0x1B, 0x80));
            refused_for(ErrorKind::AbiMismatch);
            "features 0x80000000"
        }
        "connector_begins_with_an_ack" => {
            raw::send(socket, &raw::message(ACK, 0, 0));
            refused_for(ErrorKind::Corrupt);
            "type 4"
        }
        "connector_vanishes_after_welcome" => {
            raw::greet(socket);
            socket.shutdown(std::net::Shutdown::Both).unwrap();
            "0 of the 64 bytes of ACK"
        }
        "connector_goes_silent_after_welcome" => {
            raw::greet(socket);
            raw::wait_for_the_end(socket);
            "0 of the 64 bytes of ACK"
        }
        "connector_acknowledges_with_an_error" => {
            raw::greet(socket);
            raw::send(socket, &raw::message(ACK, ErrorKind::NoSpace.code() as u32, 0));
            raw::wait_for_the_end(socket);
            "NoSpace"
        }
        "connector_acknowledges_with_garbage" => {
            raw::greet(socket);
            raw::send(socket, &[0; 64]);
            raw::wait_for_the_end(socket);
            "does not speak"
        }
        "connector_acknowledges_with_a_descriptor" => {
            raw::greet(socket);
            raw::send_with(socket, &raw::message(ACK, 0, 0), &[null.as_fd()]);
            raw::wait_for_the_end(socket);
            "ACK came with 1 descriptors"
        }
        "connector_drips_single_bytes" => {
            for byte in &hello[..40] {
                raw::send(socket, &[*byte]);
                std::thread::sleep(Duration::from_millis(20));
                // Until the listener has had enough: then it answers.
                if rustix::io::ioctl_fionread(socket).unwrap() > 0 {
                    break;
                }
            }
            refused_for(ErrorKind::TimedOut);
            "bytes of HELLO"
        }
        other => panic!("no test {other}"),
    }
}

#[test]
fn a_silent_connector_holds_up_nobody() {
    let dir = Dir::new();
    let timeout = Duration::from_secs(20);
    let listener = Listener::builder(dir.join("l")).capacity(4096).handshake_timeout(timeout).bind().unwrap();
    let silent: Vec<_> = (0..10).map(|_| raw::connect(listener.path())).collect();
    let start = Instant::now();
    for _ in 0..5 {
        let path = listener.path().to_owned();
        let good = std::thread::spawn(move || Bus::connect(path).unwrap());
        listener.accept_timeout(timeout).unwrap();
        good.join().unwrap();
    }
    assert!(start.elapsed() < timeout, "five good connectors waited for silent ones");
    assert_eq!(listener.refused(), 0);
    drop(silent);
}

#[test]
fn a_flood_of_silent_connectors_is_over_at_the_handshake_deadline() {
    let dir = Dir::new();
    let timeout = Duration::from_millis(500);
    let listener = Listener::builder(dir.join("l")).capacity(4096).handshake_timeout(timeout).bind().unwrap();
    // More than the handshakes that are held at a time.
    let silent: Vec<_> = (0..100).map(|_| raw::connect(listener.path())).collect();
    let path = listener.path().to_owned();
    let good = std::thread::spawn(move || Bus::connector(path).timeout(LONG).connect().unwrap());
    listener.accept_timeout(LONG).unwrap();
    good.join().unwrap();
    assert!(listener.refused() >= 36, "{} were refused", listener.refused());
    drop(silent);
}

macro_rules! listener_tests {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            Peer::start(&["hostile listener", stringify!($name)]).finish();
        }
    )*};
}

listener_tests! {
    listener_sends_garbage
    listener_sends_half_a_welcome_and_hangs_up
    listener_sends_half_a_welcome_and_goes_silent
    listener_goes_silent
    listener_speaks_a_later_version
    listener_answers_with_hello
    listener_refuses
    listener_refuses_with_an_unknown_number
    listener_sends_no_descriptor
    listener_sends_two_descriptors
    listener_sends_a_descriptor_with_each_half
    listener_sends_what_is_no_memfd
    listener_sends_an_unsealed_memfd
    listener_sends_a_memfd_that_can_grow
    listener_sends_a_memfd_that_can_be_sealed_further
    listener_sends_a_memfd_sealed_against_writing
    listener_sends_a_short_memfd
    listener_sends_an_empty_memfd
    listener_announces_another_size
    listener_sends_memory_without_a_header
    listener_sends_a_ring_instead_of_a_bus
    listener_sends_a_header_with_another_size
    listener_sends_rings_that_overlap
    listener_sends_a_ring_beyond_the_end
    listener_sends_a_ring_over_the_header
    listener_sends_a_ring_that_wraps_around
    listener_sends_a_capacity_that_is_no_power_of_two
    listener_sends_an_odd_alignment
    listener_sends_no_ring_at_all
    listener_sends_positions_that_disagree
}

const SIZE: u64 = 4096 * 9;
/// Two rings of four pages each behind the header page.
const RINGS: [(u64, u64, u32); 2] = [(4096, 16384, 16), (4096 * 5, 16384, 16)];

/// One hostile listener. The connector gets a clear error, in time, and leaks nothing.
fn hostile_listener(name: &str) {
    let dir = Dir::new();
    let path = dir.join("l");
    let listener = UnixListener::bind(&path).unwrap();
    let before = descriptors();
    let what = name.to_owned();
    let hostile = std::thread::spawn(move || {
        let (socket, _) = listener.accept().unwrap();
        socket.set_read_timeout(Some(LONG)).unwrap();
        let (hello, none) = raw::receive(&socket).unwrap();
        assert_eq!((hello, none.is_none()), (raw::message(HELLO, 0, 0), true));
        let expected = misbehave_as_listener(&socket, &what);
        // What it hears in the end: an ACK that says why not, or only the hang-up.
        let heard = raw::receive(&socket).map(|(bytes, _)| {
            assert_eq!(bytes[..20], raw::message(ACK, 0, 0)[..20]);
            bytes[0x14]
        });
        raw::wait_for_the_end(&socket);
        (expected, heard, listener)
    });
    let error = Bus::connector(&path).timeout(Duration::from_millis(500)).connect().unwrap_err();
    let ((kind, acknowledged, text), heard, listener) = hostile.join().unwrap();
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(text), "'{error}' does not say '{text}'");
    assert_eq!(heard, acknowledged.then_some(kind.code() as u8), "both sides know why not");
    assert_eq!(descriptors(), before, "leaked");
    // The memory is not used although it stays open in the hostile process: nothing is mapped.
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    assert!(!maps.contains(" /memfd:"), "still mapped:\n{maps}");
    drop(listener);
}

/// Does the wrong thing. What the connector must say: the kind of error, whether it sends an ACK with it, and words.
fn misbehave_as_listener(socket: &UnixStream, what: &str) -> (ErrorKind, bool, &'static str) {
    use ErrorKind::{AbiMismatch, Corrupt, NoSpace, Os, PeerDead, TimedOut};
    let welcome = raw::message(WELCOME, 0, SIZE);
    let end = || socket.shutdown(std::net::Shutdown::Write).unwrap();
    let good = raw::memory(&raw::header(3, SIZE, RINGS), SIZE, raw::SEALS);
    // WELCOME with this header in an otherwise right memfd.
    let with_header = |page: Vec<u8>| {
        raw::send_with(socket, &welcome, &[raw::memory(&page, SIZE, raw::SEALS).as_fd()]);
    };
    let with_rings = |rings| with_header(raw::header(3, SIZE, rings));
    let with_seals = |seals| {
        let memory = raw::memory(&raw::header(3, SIZE, RINGS), SIZE, seals);
        raw::send_with(socket, &welcome, &[memory.as_fd()]);
    };
    match what {
        "listener_sends_garbage" => {
            raw::send(socket, &[0xEE; 4096]);
            (AbiMismatch, false, "does not speak")
        }
        "listener_sends_half_a_welcome_and_hangs_up" => {
            raw::send_with(socket, &welcome[..32], &[good.as_fd()]);
            end();
            (PeerDead, false, "32 of the 64")
        }
        "listener_sends_half_a_welcome_and_goes_silent" => {
            raw::send_with(socket, &welcome[..32], &[good.as_fd()]);
            (TimedOut, false, "32 of the 64")
        }
        "listener_goes_silent" => (TimedOut, false, "0 of the 64"),
        "listener_speaks_a_later_version" => {
            let mut later = welcome;
            later[0x0C] = 2;
            raw::send_with(socket, &later, &[good.as_fd()]);
            (AbiMismatch, false, "version 2")
        }
        "listener_answers_with_hello" => {
            raw::send(socket, &raw::message(HELLO, 0, 0));
            (Corrupt, false, "type 1")
        }
        "listener_refuses" => {
            raw::send(socket, &raw::message(REFUSE, NoSpace.code() as u32, 0));
            (NoSpace, false, "the listener refused")
        }
        "listener_refuses_with_an_unknown_number" => {
            raw::send(socket, &raw::message(REFUSE, 0xFFFF_FFFF, 0));
            (Os, false, "4294967295")
        }
        "listener_sends_no_descriptor" => {
            raw::send(socket, &welcome);
            (Corrupt, false, "0 descriptors")
        }
        "listener_sends_two_descriptors" => {
            raw::send_with(socket, &welcome, &[good.as_fd(), good.as_fd()]);
            (Corrupt, false, "2 descriptors")
        }
        "listener_sends_a_descriptor_with_each_half" => {
            raw::send_with(socket, &welcome[..1], &[good.as_fd()]);
            raw::send_with(socket, &welcome[1..], &[good.as_fd()]);
            (Corrupt, false, "2 descriptors")
        }
        "listener_sends_what_is_no_memfd" => {
            raw::send_with(socket, &welcome, &[raw::no_memfd().as_fd()]);
            (Corrupt, true, "not a memfd")
        }
        "listener_sends_an_unsealed_memfd" => {
            with_seals(SealFlags::empty());
            (Corrupt, true, "not sealed")
        }
        "listener_sends_a_memfd_that_can_grow" => {
            with_seals(SealFlags::SHRINK | SealFlags::SEAL);
            (Corrupt, true, "not sealed")
        }
        "listener_sends_a_memfd_that_can_be_sealed_further" => {
            with_seals(SealFlags::SHRINK | SealFlags::GROW);
            (Corrupt, true, "not sealed")
        }
        "listener_sends_a_memfd_sealed_against_writing" => {
            with_seals(raw::SEALS | SealFlags::WRITE);
            (Corrupt, true, "against writing")
        }
        "listener_sends_a_short_memfd" => {
            let short = raw::memory(&raw::header(3, SIZE, RINGS), 8192, raw::SEALS);
            raw::send_with(socket, &welcome, &[short.as_fd()]);
            (Corrupt, true, "8192 bytes")
        }
        "listener_sends_an_empty_memfd" => {
            raw::send_with(socket, &raw::message(WELCOME, 0, 0), &[raw::memory(&[], 0, raw::SEALS).as_fd()]);
            (Corrupt, true, "0 bytes")
        }
        "listener_announces_another_size" => {
            raw::send_with(socket, &raw::message(WELCOME, 0, u64::MAX), &[good.as_fd()]);
            (Corrupt, true, "WELCOME announced")
        }
        "listener_sends_memory_without_a_header" => {
            with_header(vec![0; 4096]);
            (AbiMismatch, true, "not a Ramway segment")
        }
        "listener_sends_a_ring_instead_of_a_bus" => {
            with_header(raw::header(2, SIZE, RINGS));
            (Corrupt, true, "expected a bus")
        }
        "listener_sends_a_header_with_another_size" => {
            with_header(raw::header(3, SIZE * 1024, RINGS));
            (Corrupt, true, "the file has")
        }
        "listener_sends_rings_that_overlap" => {
            with_rings([(4096, 16384, 16), (4096 * 4, 16384, 16)]);
            (Corrupt, true, "overlap")
        }
        "listener_sends_a_ring_beyond_the_end" => {
            with_rings([RINGS[0], (4096 * 6, 16384, 16)]);
            (Corrupt, true, "do not lie in")
        }
        "listener_sends_a_ring_over_the_header" => {
            with_rings([(0, 16384, 16), RINGS[1]]);
            (Corrupt, true, "do not lie in")
        }
        "listener_sends_a_ring_that_wraps_around" => {
            with_rings([(u64::MAX - 4095, 8192, 16), RINGS[1]]);
            (Corrupt, true, "do not lie in")
        }
        "listener_sends_a_capacity_that_is_no_power_of_two" => {
            with_rings([(4096, 12288, 16), RINGS[1]]);
            (Corrupt, true, "power of two")
        }
        "listener_sends_an_odd_alignment" => {
            with_rings([(4096, 16384, 24), RINGS[1]]);
            (Corrupt, true, "alignment of 24")
        }
        "listener_sends_no_ring_at_all" => {
            with_rings([(0, 0, 0), (0, 0, 0)]);
            (Corrupt, true, "no ring")
        }
        "listener_sends_positions_that_disagree" => {
            let mut page = raw::header(3, SIZE, RINGS);
            page[0x480..0x488].copy_from_slice(&(1u64 << 40).to_le_bytes());
            with_header(page);
            (Corrupt, true, "positions")
        }
        other => panic!("no test {other}"),
    }
}
