//! Where a listener may be, whom it lets in, and what it leaves alone.

mod support;

use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use ramway::{Bus, ErrorKind, Listener};
use support::{Dir, LONG, Peer, argument, helper_role, listen, raw, say};

/// A user that surely is nobody's.
const STRANGER: u32 = 54_321;
/// What the kernel shows for users without a number, unless told otherwise.
const OVERFLOW: u32 = 65_534;

#[test]
fn helper() {
    let Some(role) = helper_role() else { return };
    match role[0].as_str() {
        "names" => names(),
        "umask" => umask(),
        "connect as a stranger" => connect_as(STRANGER),
        "connect as the overflow user" => connect_as(OVERFLOW),
        "listen as a stranger" => listen_as_a_stranger(),
        other => panic!("no such role: {other}"),
    }
}

fn connected(listener: &Listener, path: &Path) -> bool {
    let path = path.to_owned();
    let connecting = std::thread::spawn(move || Bus::connector(path).timeout(LONG).connect().unwrap());
    let bus = listener.accept_timeout(LONG).unwrap();
    connecting.join().unwrap().is_peer_alive() && bus.peer_pid() == Some(std::process::id())
}

/// Plain names, in a process whose Ramway directory is ours to choose.
fn names() {
    let dir = std::env::var("RAMWAY_DIR").unwrap();
    let listener = Listener::bind("engine.v2").unwrap();
    let socket = Path::new(&dir).join("engine.v2.sock");
    assert_eq!(listener.path(), socket);
    assert_eq!(std::fs::symlink_metadata(&socket).unwrap().mode() & 0o7777, 0o600);
    assert_eq!(std::fs::symlink_metadata(Path::new(&dir).join("engine.v2")).unwrap().mode() & 0o7777, 0o600);
    let connecting = std::thread::spawn(|| Bus::connect("engine.v2").unwrap());
    listener.accept_timeout(LONG).unwrap();
    connecting.join().unwrap();
    for bad in ["", ".hidden", "x.sock", "x.lock", "with space", "é", &"n".repeat(81)] {
        assert_eq!(Listener::bind(bad).unwrap_err().kind(), ErrorKind::InvalidArgument, "{bad}");
        assert_eq!(Bus::connect(bad).unwrap_err().kind(), ErrorKind::InvalidArgument, "{bad}");
    }
    // The longest name.
    let longest = "n".repeat(80);
    let listener = Listener::bind(&longest).unwrap();
    assert!(connected(&listener, Path::new(&longest)) || listener.path().exists());
    // A ring of the same name is in the way, and stays.
    let ring = ramway::Ring::create("ring").capacity(4096).sender().unwrap();
    assert_eq!(Listener::bind("ring").unwrap_err().kind(), ErrorKind::AlreadyExists);
    drop(ring);
}

#[test]
fn a_plain_name_is_a_socket_and_a_segment_in_the_ramway_directory() {
    let dir = Dir::new();
    Peer::start_with(&["names"], |command| _ = command.env("RAMWAY_DIR", dir.path())).finish();
}

#[test]
fn what_is_not_a_socket_is_left_alone() {
    let dir = Dir::new();
    std::fs::write(dir.join("file"), "precious").unwrap();
    std::fs::create_dir(dir.join("directory")).unwrap();
    std::os::unix::fs::symlink("nowhere", dir.join("link")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        dir.join("fifo"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    for name in ["file", "directory", "link", "fifo"] {
        let before = std::fs::symlink_metadata(dir.join(name)).unwrap();
        let error = Listener::bind(dir.join(name)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{name}: {error}");
        assert!(error.to_string().contains("not a socket"), "{error}");
        let after = std::fs::symlink_metadata(dir.join(name)).unwrap();
        assert_eq!((before.ino(), before.file_type()), (after.ino(), after.file_type()), "{name}");
    }
    assert_eq!(std::fs::read(dir.join("file")).unwrap(), b"precious");
    assert_eq!(dir.names(), ["directory", "fifo", "file", "link"], "no lock file is left");
}

#[test]
fn what_is_not_a_segment_is_left_alone() {
    let dir = Dir::new();
    std::fs::write(dir.join("l.lock"), "precious").unwrap();
    let error = Listener::bind(dir.join("l")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{error}");
    assert_eq!(std::fs::read(dir.join("l.lock")).unwrap(), b"precious");
    assert_eq!(dir.names(), ["l.lock"]);
}

#[test]
fn another_programs_dead_socket_is_replaced_and_a_renamed_one_survives() {
    let dir = Dir::new();
    support::dead_socket(dir.join("l"));
    let listener = Listener::bind(dir.join("l")).unwrap();
    assert!(connected(&listener, &dir.join("l")));
    // A file that another program puts there while we listen stays.
    std::fs::rename(dir.join("l"), dir.join("away")).unwrap();
    std::fs::write(dir.join("l"), "precious").unwrap();
    drop(listener);
    assert_eq!(std::fs::read(dir.join("l")).unwrap(), b"precious");
    assert!(std::fs::symlink_metadata(dir.join("away")).unwrap().file_type().is_socket());
}

#[test]
fn a_path_of_any_length_works() {
    let dir = Dir::new();
    let deep = dir.join(&"d".repeat(100)).join("e".repeat(100));
    std::fs::create_dir_all(&deep).unwrap();
    let path = deep.join("socket");
    assert!(path.as_os_str().len() > 200);
    let listener = Listener::bind(&path).unwrap();
    assert_eq!(listener.path(), path);
    assert!(connected(&listener, &path));
    drop(listener);
    assert_eq!(std::fs::read_dir(&deep).unwrap().count(), 0);
    // Only the last part has a limit, and it is said.
    let error = Listener::bind(dir.join(&"n".repeat(120))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert_eq!(dir.names(), ["d".repeat(100)]);
}

fn mode(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

/// The umask is the whole process's, so this one has a process to itself.
fn umask() {
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    let path = argument();
    let path = Path::new(&path);
    for (builder, expected) in [
        (Listener::builder(path), 0o600),
        (Listener::builder(path).allow_uids(&[STRANGER]), 0o666),
        (Listener::builder(path).mode(0o660), 0o660),
    ] {
        let listener = builder.bind().unwrap();
        assert_eq!(mode(path), expected);
        assert_eq!(mode(&path.with_extension("lock")), 0o600, "others must not be able to lock it");
        drop(listener);
    }
}

#[test]
fn the_sockets_mode_is_exact_whatever_the_umask() {
    let dir = Dir::new();
    Peer::start(&["umask", &dir.at("l")]).finish();
}

/// Gives all rights up.
fn become_user(uid: u32) {
    // SAFETY: changes this process's users, all of its threads at once; nothing in it depends on them.
    let done = unsafe {
        (libc::setgroups(0, std::ptr::null()), libc::setresgid(uid, uid, uid), libc::setresuid(uid, uid, uid))
    };
    assert_eq!(done, (0, 0, 0));
}

/// Connects, twice: trusting only its own user, and trusting root as well. Tells what came of it.
fn connect_as(uid: u32) {
    become_user(uid);
    for trusted in [&[][..], &[0]] {
        let timeout = Duration::from_millis(500);
        match Bus::connector(argument()).timeout(timeout).allow_uids(trusted).connect() {
            Ok(mut bus) => {
                assert_eq!(bus.peer_uid(), 0);
                bus.send(1, b"from a stranger").unwrap();
                say("connected");
                listen();
            }
            Err(error) => {
                say(format_args!("{}: {error}", error.kind().name()));
                listen();
            }
        }
    }
}

fn listen_as_a_stranger() {
    become_user(STRANGER);
    let listener = Listener::builder(argument()).mode(0o666).bind().unwrap();
    say("listening");
    // The connector is not its user, and the error says so.
    let error = listener.accept_timeout(Duration::from_secs(2)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(listener.refused() > 0 || listener.last_refusal().is_none());
}

/// Only root can be two users.
fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        println!("not root: nothing to see");
    }
    root
}

fn open_dir() -> Dir {
    let dir = Dir::new();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    dir
}

/// What a stranger hears at this listener, which meanwhile accepts.
fn stranger_at(listener: Listener, part: &str) -> (Vec<String>, Listener, u64) {
    let mut stranger = Peer::start(&[part, listener.path().to_str().unwrap()]);
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let accepting = std::thread::spawn(move || {
        let mut accepted = 0;
        while stopped.try_recv().is_err() {
            if let Ok(mut bus) = listener.accept_timeout(Duration::from_millis(20)) {
                assert_eq!(bus.peer_uid(), STRANGER);
                assert_eq!(&*bus.recv_timeout(LONG).unwrap(), b"from a stranger");
                accepted += 1;
            }
        }
        (listener, accepted)
    });
    let mut heard = Vec::new();
    for _ in 0..2 {
        heard.push(stranger.hear());
        stranger.tell("go on");
    }
    stop.send(()).unwrap();
    let (listener, accepted) = accepting.join().unwrap();
    stranger.finish();
    (heard, listener, accepted)
}

#[test]
fn another_user_cannot_even_reach_a_private_socket() {
    if !is_root() {
        return;
    }
    let dir = open_dir();
    let (heard, listener, accepted) = stranger_at(Listener::bind(dir.join("l")).unwrap(), "connect as a stranger");
    assert!(heard.iter().all(|h| h.starts_with("PermissionDenied")), "{heard:?}");
    assert_eq!((accepted, listener.refused()), (0, 0));
}

#[test]
fn another_user_is_refused_where_the_socket_lets_it_in() {
    if !is_root() {
        return;
    }
    let dir = open_dir();
    let listener = Listener::builder(dir.join("l")).mode(0o666).bind().unwrap();
    let (heard, listener, accepted) = stranger_at(listener, "connect as a stranger");
    // First it is the stranger who does not trust root, then the listener who does not know the stranger.
    assert!(heard[0].starts_with("PermissionDenied") && heard[0].contains("allow_uids"), "{heard:?}");
    assert!(heard[1].starts_with("PermissionDenied") && heard[1].contains("the listener refused"), "{heard:?}");
    assert_eq!(accepted, 0);
    let said = listener.last_refusal().unwrap();
    assert!(said.contains("54321") && said.contains("allow_uids"), "{said}");
}

#[test]
fn a_named_user_is_accepted_if_it_trusts_the_listener() {
    if !is_root() {
        return;
    }
    let dir = open_dir();
    let listener = Listener::builder(dir.join("l")).capacity(4096).allow_uids(&[STRANGER]).bind().unwrap();
    let (heard, _, accepted) = stranger_at(listener, "connect as a stranger");
    assert!(heard[0].starts_with("PermissionDenied") && heard[0].contains("allow_uids"), "{heard:?}");
    assert_eq!((heard[1].as_str(), accepted), ("connected", 1));
}

#[test]
fn the_overflow_user_is_refused_even_if_it_is_named() {
    if !is_root() {
        return;
    }
    let dir = open_dir();
    let listener = Listener::builder(dir.join("l")).capacity(4096).allow_uids(&[OVERFLOW]).bind().unwrap();
    let (heard, listener, accepted) = stranger_at(listener, "connect as the overflow user");
    assert!(heard.iter().all(|h| h.starts_with("PermissionDenied")), "{heard:?}");
    assert_eq!(accepted, 0);
    let said = listener.last_refusal().unwrap();
    assert!(said.contains("run it as another user"), "{said}");
}

#[test]
fn a_listener_of_another_user_is_not_trusted() {
    if !is_root() {
        return;
    }
    let dir = open_dir();
    let mut other = Peer::start(&["listen as a stranger", &dir.at("l")]);
    other.hear();
    let connector = Bus::connector(dir.join("l")).timeout(Duration::from_millis(500));
    let error = connector.connect().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
    assert!(error.to_string().contains("54321"), "{error}");
    // Trusting it does not make it trust us.
    let error = connector.allow_uids(&[STRANGER]).connect().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
    assert!(error.to_string().contains("the listener refused"), "{error}");
    other.finish();
}

#[test]
fn a_socket_that_is_not_ramways_is_an_error_in_time() {
    let dir = Dir::new();
    let other = std::os::unix::net::UnixListener::bind(dir.join("web")).unwrap();
    let answering = std::thread::spawn(move || {
        let (stream, _): (UnixStream, _) = other.accept().unwrap();
        raw::send(&stream, b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nwhat?");
        raw::wait_for_the_end(&stream);
    });
    let error = Bus::connect(dir.join("web")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AbiMismatch, "{error}");
    answering.join().unwrap();
}
