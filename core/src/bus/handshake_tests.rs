//! Both halves of the handshake against a correct and a wrong other side.

use std::fs::File;
use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

use super::*;

fn soon() -> Option<Instant> {
    Some(Instant::now() + Duration::from_millis(100))
}

fn message(kind: Type, status: u32, size: u64) -> [u8; HANDSHAKE_SIZE] {
    encode(kind, Message { status, size, ..Message::EMPTY })
}

fn send_with(socket: &UnixStream, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(32))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(control.push(SendAncillaryMessage::ScmRights(descriptors)));
    rustix::net::sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::empty()).unwrap();
}

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// What `greet` makes of an answer that is there already.
fn greet_with(answer: impl FnOnce(&UnixStream)) -> Result<Greeting> {
    let (connector, listener) = UnixStream::pair().unwrap();
    answer(&listener);
    listener.shutdown(std::net::Shutdown::Write).unwrap();
    greet(connector.as_fd(), HANDSHAKE_FEATURES, soon(), &mut || true)
}

fn greet_error(answer: impl FnOnce(&UnixStream)) -> Error {
    match greet_with(answer) {
        Err(error) => error,
        Ok(_) => panic!("a wrong answer was taken"),
    }
}

/// What the listener makes of a HELLO, and what it answers.
fn incoming_with(hello: impl FnOnce(&UnixStream)) -> (Result<bool>, Vec<u8>) {
    let (mut connector, listener) = UnixStream::pair().unwrap();
    hello(&connector);
    connector.shutdown(std::net::Shutdown::Write).unwrap();
    let result = Incoming::hello(HANDSHAKE_FEATURES).take(listener.as_fd());
    drop(listener);
    let mut answer = Vec::new();
    let _ = connector.read_to_end(&mut answer);
    (result, answer)
}

fn refused(hello: impl FnOnce(&UnixStream), kind: ErrorKind) {
    let (result, answer) = incoming_with(hello);
    assert_eq!(result.unwrap_err().kind(), kind);
    assert_eq!(answer, message(Type::Refuse, kind.code() as u32, 0));
}

#[test]
fn the_layout_is_the_documented_one() {
    let bytes = message(Type::Welcome, 0x0102_0304, 0x1122_3344_5566_7788);
    let mut want = [0u8; 64];
    want[..8].copy_from_slice(b"RAMBUS\r\n");
    want[8..16].copy_from_slice(&[0x0D, 0x0C, 0x0B, 0x0A, 1, 0, 0, 0]);
    want[16..24].copy_from_slice(&[2, 0, 0, 0, 4, 3, 2, 1]);
    want[0x20..0x28].copy_from_slice(&[0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11]);
    assert_eq!(bytes, want);
    let read = decode(&bytes, Type::Welcome, HANDSHAKE_FEATURES).unwrap();
    assert_eq!((read.status, read.size), (0x0102_0304, 0x1122_3344_5566_7788));
}

#[test]
fn a_whole_handshake() {
    let (connector, listener) = UnixStream::pair().unwrap();
    let mut incoming = Incoming::hello(HANDSHAKE_FEATURES);
    assert!(!incoming.take(listener.as_fd()).unwrap());
    let served = std::thread::spawn(move || {
        socket::wait_readable(listener.as_fd(), None).unwrap();
        assert!(incoming.take(listener.as_fd()).unwrap());
        let memory = File::open("/").unwrap();
        incoming = welcome(listener.as_fd(), memory.as_fd(), 4711, None).unwrap();
        while !incoming.take(listener.as_fd()).unwrap() {
            socket::wait_readable(listener.as_fd(), None).unwrap();
        }
        listener
    });
    let Greeting::Memory(Offer { memory, size, .. }) =
        greet(connector.as_fd(), HANDSHAKE_FEATURES, None, &mut || true).unwrap()
    else {
        panic!("hung up")
    };
    assert_eq!(size, 4711);
    drop(memory);
    acknowledge(connector.as_fd(), &Ok(())).unwrap();
    let listener = served.join().unwrap();
    assert!(!socket::hung_up(connector.as_fd()));
    drop(listener);
    assert!(socket::hung_up(connector.as_fd()));
}

#[test]
fn both_learn_that_the_connector_cannot_use_the_memory() {
    let (connector, listener) = UnixStream::pair().unwrap();
    let memory = File::open("/").unwrap();
    let mut incoming = welcome(listener.as_fd(), memory.as_fd(), 1, None).unwrap();
    let outcome: Result<()> = Err(ErrorKind::Corrupt.into());
    acknowledge(connector.as_fd(), &outcome).unwrap();
    let error = incoming.take(listener.as_fd()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("connector"), "{error}");
}

#[test]
fn a_wrong_hello_is_refused_with_the_reason() {
    refused(|s| (&*s).write_all(&[0xAA; 64]).unwrap(), ErrorKind::AbiMismatch);
    refused(|s| (&*s).write_all(b"GET / HTTP/1.1\r\nHost: x\r\n").unwrap(), ErrorKind::PeerDead);
    refused(|s| (&*s).write_all(&message(Type::Ack, 0, 0)).unwrap(), ErrorKind::Corrupt);
    refused(|_| {}, ErrorKind::PeerDead);
    let changed = |at: usize, value: u8| {
        let mut bytes = message(Type::Hello, 0, 0);
        bytes[at] = value;
        bytes
    };
    refused(|s| (&*s).write_all(&changed(0x0C, 2)).unwrap(), ErrorKind::AbiMismatch);
    refused(|s| (&*s).write_all(&changed(0x08, 0x0A)).unwrap(), ErrorKind::AbiMismatch);
    refused(|s| (&*s).write_all(&changed(0x18, 1)).unwrap(), ErrorKind::AbiMismatch);
    for harmless in [0x0E, 0x1C, 0x28, 0x3F] {
        let (result, answer) = incoming_with(|s| (&*s).write_all(&changed(harmless, 9)).unwrap());
        assert!(result.unwrap() && answer.is_empty());
    }
}

#[test]
fn half_a_hello_waits_and_then_expires() {
    let (mut connector, listener) = UnixStream::pair().unwrap();
    connector.write_all(&message(Type::Hello, 0, 0)[..32]).unwrap();
    let mut incoming = Incoming::hello(HANDSHAKE_FEATURES);
    assert!(!incoming.take(listener.as_fd()).unwrap());
    let error = incoming.expire(listener.as_fd());
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(error.to_string().contains("32 of the 64"), "{error}");
    let mut answer = [0; 64];
    connector.read_exact(&mut answer).unwrap();
    assert_eq!(answer, message(Type::Refuse, ErrorKind::TimedOut.code() as u32, 0));
}

#[test]
fn a_hello_in_single_bytes_is_whole_in_the_end() {
    let (mut connector, listener) = UnixStream::pair().unwrap();
    let mut incoming = Incoming::hello(HANDSHAKE_FEATURES);
    for (i, byte) in message(Type::Hello, 0, 0).into_iter().enumerate() {
        assert!(!incoming.take(listener.as_fd()).unwrap(), "whole after {i} bytes");
        connector.write_all(&[byte]).unwrap();
    }
    assert!(incoming.take(listener.as_fd()).unwrap());
}

#[test]
fn a_refusal_is_the_connectors_error() {
    for kind in [ErrorKind::PermissionDenied, ErrorKind::NoSpace, ErrorKind::TimedOut] {
        let error = greet_error(|s| refuse(s.as_fd(), &kind.into()));
        assert_eq!(error.kind(), kind);
    }
    // Also from a listener of a later version, and with a number that is not known yet.
    let mut later = message(Type::Refuse, 4000, 0);
    later[0x0C] = 9;
    let error = greet_error(|s| (&*s).write_all(&later).unwrap());
    assert_eq!(error.kind(), ErrorKind::Os);
    assert!(error.to_string().contains("4000"), "{error}");
}

#[test]
fn a_refusal_is_read_although_hello_could_not_be_sent() {
    let (connector, listener) = UnixStream::pair().unwrap();
    refuse(listener.as_fd(), &ErrorKind::PermissionDenied.into());
    drop(listener);
    let Err(error) = greet(connector.as_fd(), HANDSHAKE_FEATURES, None, &mut || true) else {
        panic!("a refusal was taken as a welcome")
    };
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
}

#[test]
fn a_wrong_welcome_is_an_error() {
    let file = File::open("/").unwrap();
    let welcome = message(Type::Welcome, 0, 8192);
    assert!(matches!(greet_with(|_| {}), Ok(Greeting::HungUp)));
    assert_eq!(greet_error(|s| (&*s).write_all(&[7; 64]).unwrap()).kind(), ErrorKind::AbiMismatch);
    assert_eq!(greet_error(|s| (&*s).write_all(&welcome[..63]).unwrap()).kind(), ErrorKind::PeerDead);
    assert_eq!(greet_error(|s| send_with(s, &welcome[..1], &[file.as_fd()])).kind(), ErrorKind::PeerDead);
    let none = greet_error(|s| (&*s).write_all(&welcome).unwrap());
    assert_eq!(none.kind(), ErrorKind::Corrupt);
    assert!(none.to_string().contains("0 descriptors"), "{none}");
    let hello = message(Type::Hello, 0, 0);
    assert_eq!(greet_error(|s| send_with(s, &hello, &[file.as_fd()])).kind(), ErrorKind::Corrupt);
}

#[test]
fn silence_ends_at_the_deadline() {
    let (connector, _listener) = UnixStream::pair().unwrap();
    let start = Instant::now();
    let Err(error) = greet(connector.as_fd(), HANDSHAKE_FEATURES, soon(), &mut || true) else {
        panic!("silence was taken as a welcome")
    };
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(start.elapsed() >= Duration::from_millis(99));
}

/// Counts this process's descriptors, so it runs alone in a process of its own.
#[test]
fn surplus_descriptors_are_closed() {
    const ALONE: &str = "RAMWAY_TEST_SURPLUS";
    if std::env::var_os(ALONE).is_none() {
        let mut child = crate::runner::again();
        child.args(["--exact", "bus::handshake::tests::surplus_descriptors_are_closed"]).env(ALONE, "1");
        assert!(child.status().unwrap().success());
        return;
    }
    let file = File::open("/").unwrap();
    let before = open_descriptors();
    let welcome = message(Type::Welcome, 0, 8192);
    for count in [2, 8, 9, 30] {
        let error = greet_error(|s| send_with(s, &welcome, &vec![file.as_fd(); count]));
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert_eq!(open_descriptors(), before, "after WELCOME with {count} descriptors");
        refused(|s| send_with(s, &message(Type::Hello, 0, 0), &vec![file.as_fd(); count]), ErrorKind::Corrupt);
        assert_eq!(open_descriptors(), before, "after HELLO with {count} descriptors");
    }
    // One with each half of a message is two.
    let split = greet_error(|s| {
        send_with(s, &welcome[..32], &[file.as_fd()]);
        send_with(s, &welcome[32..], &[file.as_fd()]);
    });
    assert_eq!(split.kind(), ErrorKind::Corrupt);
    assert_eq!(open_descriptors(), before);
}

#[test]
fn an_rpc_and_a_plain_bus_refuse_each_other() {
    for (asked, served, text) in [(RPC_FEATURES, 0, "speaks RPC"), (0, RPC_FEATURES, "is a plain bus")] {
        let (connector, listener) = UnixStream::pair().unwrap();
        send(connector.as_fd(), Type::Hello, Message { features: asked, ..Message::EMPTY }, None).unwrap();
        let error = Incoming::hello(served).take(listener.as_fd()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AbiMismatch);
        assert!(error.to_string().contains(text), "{error}");
        let Err(refused) = greet(connector.as_fd(), asked, soon(), &mut || true) else { panic!("taken") };
        assert_eq!(refused.kind(), ErrorKind::AbiMismatch);
    }
}

#[test]
fn an_rpc_server_says_how_many_calls_may_be_in_flight() {
    for (max, taken) in [(1024, true), (0, false)] {
        let (connector, listener) = UnixStream::pair().unwrap();
        let memory = File::open("/dev/null").unwrap();
        welcome(listener.as_fd(), memory.as_fd(), 1, Some(max)).unwrap();
        match greet(connector.as_fd(), RPC_FEATURES, soon(), &mut || true) {
            Ok(Greeting::Memory(offer)) => assert_eq!((offer.max_in_flight, taken), (max, true)),
            Ok(Greeting::HungUp) => panic!("nobody hung up"),
            Err(error) => assert_eq!((error.kind(), taken), (ErrorKind::Corrupt, false)),
        }
    }
}
