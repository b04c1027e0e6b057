//! Where two listeners meet: a name and its path are one place, and nobody's live socket is ever taken away.

mod support;

use std::fs::Permissions;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use ramway::survey::{CleanOptions, Outcome, clean};
use ramway::{Bus, ErrorKind, Listener};
use support::{Dir, LONG, Peer, argument, helper_role, listen, say};

#[test]
fn helper() {
    let Some(role) = helper_role() else { return };
    match role[0].as_str() {
        "serve" => serve(),
        "bind" => bind(),
        "bind as no one in particular" => {
            if support::is_root() {
                // Root may connect to everything.
                // SAFETY: changes this process's user, all of its threads at once; nothing in it depends on it.
                assert_eq!(unsafe { libc::setresuid(54_321, 54_321, 54_321) }, 0);
            }
            bind();
        }
        other => panic!("no such role: {other}"),
    }
}

/// Listens and serves one peer, then stays until it is told to go, or is killed.
fn serve() {
    let listener = Listener::bind(argument()).unwrap();
    say(listener.path().display());
    let mut bus = listener.accept_timeout(LONG).unwrap();
    bus.send(1, b"served").unwrap();
    say("served");
    listen();
}

/// Tries to listen, and says what came of it.
fn bind() {
    match Listener::bind(argument()) {
        Ok(_) => say("bound"),
        Err(error) => say(format_args!("{}: {error}", error.kind().name())),
    }
}

/// That nothing is in the way there, and that nothing is left.
fn can_bind(at: &str, dir: &Path, cwd: &Path) {
    let mut peer = process("bind", at, dir, cwd);
    peer.expect("bound");
    peer.finish();
}

/// A process whose Ramway directory is `dir`, in the directory `cwd`.
fn process(role: &str, at: &str, dir: &Path, cwd: &Path) -> Peer {
    Peer::start_with(&[role, at], |command| _ = command.env("RAMWAY_DIR", dir).current_dir(cwd))
}

fn is_served(at: &Path) {
    let mut bus = Bus::connector(at).timeout(LONG).connect().unwrap();
    assert_eq!(&*bus.recv_timeout(LONG).unwrap(), b"served");
}

/// Every way to write the socket of the name `bell` in the Ramway directory `dir`, from the directory `cwd`.
fn spellings(outer: &Dir) -> (PathBuf, PathBuf, Vec<String>) {
    let (dir, cwd) = (outer.join("names"), outer.join("cwd"));
    std::fs::create_dir(&dir).unwrap();
    std::fs::create_dir(&cwd).unwrap();
    symlink(&dir, outer.join("link")).unwrap();
    let mut all = vec!["bell".into(), "../names/bell.sock".into(), "../names//./bell.sock".into()];
    for directory in ["names", "link", "names/../names", "cwd/../link"] {
        all.push(outer.join(directory).join("bell.sock").to_str().unwrap().into());
    }
    (dir, cwd, all)
}

#[test]
fn a_name_and_every_spelling_of_its_path_are_one_place() {
    let outer = Dir::new();
    let (dir, cwd, spellings) = spellings(&outer);
    for first in &spellings {
        let mut listener = process("serve", first, &dir, &cwd);
        listener.hear();
        let before = std::fs::symlink_metadata(dir.join("bell.sock")).unwrap().ino();
        for second in &spellings {
            let said = process("bind", second, &dir, &cwd).hear();
            assert!(said.starts_with("AlreadyExists") && said.contains("live"), "{first}, then {second}: {said}");
        }
        assert_eq!(std::fs::symlink_metadata(dir.join("bell.sock")).unwrap().ino(), before, "{first}");
        is_served(&dir.join("bell.sock"));
        listener.expect("served");
        // A successor takes the place after a death, whichever way it opens it.
        listener.kill();
        assert!(dir.join("bell.sock").exists());
        can_bind(&spellings[1], &dir, &cwd);
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0, "{first}");
    }
}

#[test]
fn from_a_directory_of_the_same_name_elsewhere_it_is_another_place() {
    let (dir, other) = (Dir::new(), Dir::new());
    let mut listener = process("serve", "bell", dir.path(), dir.path());
    listener.hear();
    // Under another RAMWAY_DIR the path is only a path: the living socket still protects itself.
    let said = process("bind", &dir.at("bell.sock"), other.path(), other.path()).hear();
    assert!(said.starts_with("AlreadyExists") && said.contains("is listening at"), "{said}");
    can_bind("bell", other.path(), other.path());
    is_served(&dir.join("bell.sock"));
    listener.expect("served");
    listener.finish();
    assert!(dir.names().is_empty());
}

#[test]
fn what_cannot_be_a_name_is_only_a_path() {
    let dir = Dir::new();
    // A directory beside a socket of its name is no obstacle outside the Ramway directory.
    std::fs::create_dir(dir.join("engine")).unwrap();
    let listener = Listener::bind(dir.join("engine.sock")).unwrap();
    assert_eq!(dir.names(), ["engine", "engine.sock", "engine.sock.lock"]);
    drop(listener);
    for odd in [".sock", ".hidden.sock", "x.sock.sock", "x.lock.sock", "with space.sock"] {
        let mut listener = process("serve", &dir.at(odd), dir.path(), dir.path());
        listener.hear();
        assert!(dir.join(&format!("{odd}.lock")).exists(), "{odd}: {:?}", dir.names());
        is_served(&dir.join(odd));
        listener.expect("served");
        listener.finish();
    }
}

#[test]
fn a_connector_by_path_asks_the_lock_of_the_name() {
    let dir = Dir::new();
    let mut listener = process("serve", "bell", dir.path(), dir.path());
    let path = listener.hear();
    std::fs::remove_file(&path).unwrap();
    let mut asking = Peer::start_with(&["bind", &path], |command| _ = command.env("RAMWAY_DIR", dir.path()));
    assert!(asking.hear().contains("live"), "the lock is held though the socket is gone");
    listener.kill();
}

fn still_serves(foreign: &UnixListener, path: &Path, before: u64) {
    assert_eq!(std::fs::symlink_metadata(path).unwrap().ino(), before);
    foreign.set_nonblocking(true).unwrap();
    while foreign.accept().is_ok() {}
    foreign.set_nonblocking(false).unwrap();
    let _client = UnixStream::connect(path).unwrap();
    foreign.accept().unwrap();
}

#[test]
fn another_programs_live_socket_is_left_alone() {
    let dir = Dir::new();
    let path = dir.join("web");
    let foreign = UnixListener::bind(&path).unwrap();
    let before = std::fs::symlink_metadata(&path).unwrap().ino();
    let error = Listener::bind(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{error}");
    assert!(error.to_string().contains("does not hold Ramway's lock"), "{error}");
    still_serves(&foreign, &path, before);
    // Also if its backlog is full, so that it cannot be connected to.
    rustix::net::listen(&foreign, 0).unwrap();
    let mut waiting = Vec::new();
    loop {
        use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
        match connect(&socket, &SocketAddrUnix::new(&path).unwrap()) {
            Ok(()) => waiting.push(socket),
            Err(e) => break assert_eq!(e, rustix::io::Errno::AGAIN),
        }
    }
    assert_eq!(Listener::bind(&path).unwrap_err().kind(), ErrorKind::AlreadyExists);
    drop(waiting);
    still_serves(&foreign, &path, before);
    assert_eq!(dir.names(), ["web"]);
    // As a plain name, with the same file.
    std::fs::rename(&path, dir.join("web.sock")).unwrap();
    let said = process("bind", "web", dir.path(), dir.path()).hear();
    assert!(said.starts_with("AlreadyExists") && said.contains("does not hold Ramway's lock"), "{said}");
    still_serves(&foreign, &dir.join("web.sock"), before);
    // Once it is gone, its socket is in nobody's way.
    drop(foreign);
    support::is_refused(dir.join("web.sock"));
    can_bind("web", dir.path(), dir.path());
    assert!(dir.names().is_empty());
}

#[test]
fn a_live_socket_of_another_type_is_left_alone() {
    let dir = Dir::new();
    let log = UnixDatagram::bind(dir.join("log")).unwrap();
    assert_eq!(Listener::bind(dir.join("log")).unwrap_err().kind(), ErrorKind::AlreadyExists);
    UnixDatagram::unbound().unwrap().send_to(b"x", dir.join("log")).unwrap();
    log.recv(&mut [0]).unwrap();
    drop(log);
    support::is_refused(dir.join("log"));
    Listener::bind(dir.join("log")).unwrap();
}

#[test]
fn a_listener_removes_its_own_socket_and_no_other() {
    let dir = Dir::new();
    let listener = Listener::bind(dir.join("l")).unwrap();
    std::fs::rename(dir.join("l"), dir.join("away")).unwrap();
    let foreign = UnixListener::bind(dir.join("l")).unwrap();
    let before = std::fs::symlink_metadata(dir.join("l")).unwrap().ino();
    drop(listener);
    still_serves(&foreign, &dir.join("l"), before);
    assert_eq!(dir.names(), ["away", "l"]);
    // Not even a dead one.
    std::fs::remove_file(dir.join("l")).unwrap();
    let listener = Listener::bind(dir.join("l")).unwrap();
    std::fs::remove_file(dir.join("l")).unwrap();
    support::dead_socket(dir.join("l"));
    drop(listener);
    assert!(std::fs::symlink_metadata(dir.join("l")).unwrap().file_type().is_socket());
}

#[test]
fn clean_and_creators_leave_a_live_socket_beside_a_dead_listener() {
    let dir = Dir::new();
    let dead = |path: &str| {
        let mut listener = process("serve", path, dir.path(), dir.path());
        listener.hear();
        listener.kill();
    };
    dead("bell");
    assert_eq!(dir.names(), ["bell", "bell.sock"]);
    let done = clean(dir.path(), &CleanOptions::default()).unwrap();
    assert!(matches!(&done[..], [(name, Ok(Outcome::Removed))] if name == "bell"), "{done:?}");
    assert!(dir.names().is_empty());
    dead("bell");
    std::fs::remove_file(dir.join("bell.sock")).unwrap();
    let foreign = UnixListener::bind(dir.join("bell.sock")).unwrap();
    let before = std::fs::symlink_metadata(dir.join("bell.sock")).unwrap().ino();
    clean(dir.path(), &CleanOptions::default()).unwrap();
    assert_eq!(dir.names(), ["bell.sock"]);
    still_serves(&foreign, &dir.join("bell.sock"), before);
    // A ring over a dead listener's name.
    drop(foreign);
    support::is_refused(dir.join("bell.sock"));
    dead("bell");
    drop(ramway::Ring::create(dir.join("bell")).capacity(4096).sender().unwrap());
    assert!(!dir.join("bell.sock").exists());
}

#[test]
fn a_socket_that_may_not_be_asked_is_left_alone() {
    let dir = Dir::new();
    support::dead_socket(dir.join("l"));
    std::fs::set_permissions(dir.join("l"), Permissions::from_mode(0o000)).unwrap();
    std::fs::set_permissions(dir.path(), Permissions::from_mode(0o777)).unwrap();
    let mut peer = Peer::start(&["bind as no one in particular", &dir.at("l")]);
    let said = peer.hear();
    assert!(said.starts_with("PermissionDenied") && said.contains("asking whether somebody listens"), "{said}");
    peer.finish();
    assert_eq!(dir.names(), ["l"]);
}
