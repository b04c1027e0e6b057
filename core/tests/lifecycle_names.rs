//! Where names stand, who may use them, and what they may lie on.

mod support;

use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::time::Duration;

use ramway::{ErrorKind, Region, Ring, survey};
use support::{Dir, LONG, Peer, helper_role, is_root, listen, say};

/// The other process in the tests below.
#[test]
fn helper() {
    let Some(role) = helper_role() else { return };
    match role.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["by-name"] => by_name(),
        ["as-user", uid] => as_user(uid.parse().unwrap()),
        _ => panic!("{role:?}"),
    }
}

fn kind<T>(result: ramway::Result<T>) -> ErrorKind {
    result.err().expect("an error").kind()
}

#[test]
fn files_are_private_unless_asked_for() {
    let dir = Dir::new();
    let mode = |name: &str| std::fs::metadata(dir.at(name)).unwrap().permissions().mode() & 0o7777;
    let _a = Ring::create(dir.at("a")).receiver().unwrap();
    assert_eq!(mode("a"), 0o600);
    let _b = Ring::create(dir.at("b")).mode(0o666).receiver().unwrap();
    assert_eq!(mode("b"), 0o666, "exactly, whatever the umask");
}

#[test]
fn no_descriptor_survives_an_exec_and_none_is_left_behind() {
    let dir = Dir::new();
    let name = dir.at("ring");
    let fds = || {
        let mut fds: Vec<_> = std::fs::read_dir("/proc/self/fd").unwrap().map(|e| e.unwrap().path()).collect();
        fds.retain(|fd| std::fs::read_link(fd).is_ok_and(|to| to.starts_with(dir.path())));
        fds
    };
    let rx = Ring::create(&name).receiver().unwrap();
    let open = fds();
    assert!(!open.is_empty(), "a lock description");
    for fd in &open {
        let number: i32 = fd.file_name().unwrap().to_str().unwrap().parse().unwrap();
        // SAFETY: asks for a flag.
        assert_eq!(unsafe { libc::fcntl(number, libc::F_GETFD) } & libc::FD_CLOEXEC, libc::FD_CLOEXEC);
    }
    drop(rx);
    assert!(fds().is_empty());
}

#[test]
fn disks_only_when_asked_for_and_other_file_systems_never() {
    let proc = Ring::create("/proc/self/ring").receiver().unwrap_err();
    assert_eq!(proc.kind(), ErrorKind::Unsupported, "{proc}");
    let dir = std::env::temp_dir().join(format!("ramway-test-disk-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let name = dir.join("ring");
    // SAFETY: `statfs` fills in plain old data.
    let magic = unsafe {
        let mut fs: libc::statfs = std::mem::zeroed();
        let path = std::ffi::CString::new(dir.to_str().unwrap()).unwrap();
        assert_eq!(libc::statfs(path.as_ptr(), &mut fs), 0);
        fs.f_type
    };
    let (without, with) = (Ring::create(&name).receiver(), Ring::create(&name).allow_disk(true).receiver());
    match magic {
        0x0102_1994 => assert!(without.is_ok()),
        0x794C_7630 => assert_eq!((kind(without), kind(with)), (ErrorKind::Unsupported, ErrorKind::Unsupported)),
        _ => {
            let refused = without.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Unsupported);
            assert!(refused.to_string().contains("allow_disk"), "{refused}");
            let mut rx = with.unwrap();
            let mut tx = Ring::open(&name).allow_disk(true).sender().unwrap();
            tx.send(0, b"on disk").unwrap();
            assert_eq!(&*rx.recv_timeout(LONG).unwrap(), b"on disk");
            assert_eq!(kind(Ring::open(&name).sender()), ErrorKind::Unsupported);
        }
    }
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn names_stand_in_the_ramway_directory() {
    let dir = Dir::new();
    let root = dir.at("made-on-demand");
    let mut peer = Peer::start_with(&["by-name"], |command| {
        command.env("RAMWAY_DIR", &root);
    });
    peer.expect("made");
    assert!(std::path::Path::new(&root).join("a-Valid_name.1").exists());
    assert_eq!(std::fs::metadata(&root).unwrap().permissions().mode() & 0o7777, 0o700);
    let found = survey::ls(std::path::Path::new(&root)).unwrap();
    assert_eq!(found.len(), 1);
    assert!(found[0].segment.as_ref().unwrap().consumer_held);
    peer.finish();
}

fn by_name() {
    assert_eq!(kind(Ring::open("absent").receiver()), ErrorKind::NotFound);
    assert_eq!(kind(Ring::open("absent").timeout(Duration::from_millis(20)).receiver()), ErrorKind::NotFound);
    assert!(!survey::directory().exists(), "opening makes nothing");
    assert!(survey::ls(&survey::directory()).unwrap().is_empty());
    let long = "x".repeat(81);
    for bad in ["", ".hidden", "..", "a b", "a.sock", "é", "a\0b", &long, "/", "/dev/shm/", "a/..", "/dev/shm/x\0y"] {
        assert_eq!(kind(Ring::create(bad).receiver()), ErrorKind::InvalidArgument, "{bad:?}");
        assert_eq!(kind(Ring::open(bad).receiver()), ErrorKind::InvalidArgument, "{bad:?}");
    }
    let longest = "x".repeat(80);
    drop(Ring::create(&longest).receiver().unwrap());
    let rx = Ring::create("a-Valid_name.1").receiver().unwrap();
    assert_eq!(survey::inspect("a-Valid_name.1").unwrap().path, survey::directory().join("a-Valid_name.1"));
    say("made");
    listen();
    drop(rx);
}

#[test]
fn the_default_directory_must_be_ours_alone() {
    if !is_root() {
        eprintln!("skipped: only root can become a user whose directory nobody else uses");
        return;
    }
    let uid = 1_000_000_000 + std::process::id();
    let root = std::path::PathBuf::from(format!("/dev/shm/ramway-{uid}"));
    let run = || {
        let mut peer = Peer::start_with(&["as-user", &uid.to_string()], |command| {
            command.env_remove("RAMWAY_DIR");
        });
        let said = peer.hear();
        peer.finish();
        said
    };
    assert_eq!(run(), "ok");
    assert_eq!(std::fs::metadata(&root).unwrap().uid(), uid);
    assert_eq!(std::fs::metadata(&root).unwrap().permissions().mode() & 0o7777, 0o700);
    std::fs::set_permissions(&root, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(run(), "PermissionDenied");
    std::fs::remove_dir(&root).unwrap();
    std::fs::create_dir(&root).unwrap();
    std::fs::set_permissions(&root, std::fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(run(), "PermissionDenied", "somebody else's");
    std::fs::remove_dir(&root).unwrap();
    let dir = Dir::new();
    std::os::unix::fs::chown(dir.path(), Some(uid), None).unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    std::os::unix::fs::symlink(dir.path(), &root).unwrap();
    let said = run();
    std::fs::remove_file(&root).unwrap();
    assert_eq!(said, "PermissionDenied", "a link is no real directory");
}

fn as_user(uid: u32) {
    // SAFETY: a system call on numbers; this process has one thread that matters.
    assert_eq!(unsafe { libc::setuid(uid) }, 0);
    match Ring::create("mine").receiver() {
        Ok(_) => say("ok"),
        Err(e) => say(e.kind().name()),
    }
}

#[test]
fn no_permission_is_said_so() {
    if !is_root() {
        eprintln!("skipped: only root can become another user");
        return;
    }
    let dir = Dir::new();
    let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(dir.at("mine")).unwrap();
    drop(file);
    let uid = 1_000_000_000 + std::process::id();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let mut peer = Peer::start_with(&["as-user", &uid.to_string()], |command| {
        command.env("RAMWAY_DIR", dir.path());
    });
    peer.expect("PermissionDenied");
    peer.finish();
    assert_eq!(dir.names(), ["mine"]);
}

/// What a language does that has signals to look after.
#[test]
fn waiting_for_a_name_or_a_role_can_be_given_up() {
    let dir = Dir::new();
    let _taken = Ring::create(dir.join("taken")).sender().unwrap();
    for (what, name) in [("absent", "absent"), ("taken", "taken")] {
        let asked = std::cell::Cell::new(0);
        let go_on = || {
            asked.set(asked.get() + 1);
            asked.get() < 3
        };
        let error = Ring::open(dir.join(name)).timeout(LONG).sender_while(&go_on).unwrap_err();
        assert_eq!((error.kind(), asked.get()), (ErrorKind::Interrupted, 3), "{what}: {error}");
        assert!(error.to_string().contains(name), "{error}");
        if what == "absent" {
            let error = Region::builder().timeout(LONG).open_while(dir.join(name), &|| false).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Interrupted);
        }
    }
    let receiver = Ring::open(dir.join("taken")).receiver_while(&|| unreachable!("there is nothing to wait for"));
    drop(receiver.unwrap());
}
