//! Where a region's memory comes from and how it is held: limits, locks, huge pages. Real limits in real processes.

mod support;

use ramway::{ErrorKind, Region};
use std::io::Write;
use std::path::{Path, PathBuf};

use support::{Dir, Peer, argument_of, is_root, mount_tmpfs};

/// Runs this test again, in a process of its own whose limits it may spoil, and expects it to succeed.
fn in_child(test: &str, argument: &Path) {
    let said = Peer::again(test, argument).rest();
    for line in said.lines().filter(|line| line.starts_with("skipped")) {
        println!("{line}");
    }
}

/// A line of /proc/self/status, in bytes.
fn status(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.split_ascii_whitespace().next().unwrap().parse::<u64>().unwrap() << 10
}

fn no_space(result: ramway::Result<Region>, limit: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    assert!(error.to_string().contains(limit), "{error}");
    println!("{error}");
}

#[test]
fn more_than_the_machine_has_is_refused_at_once() {
    let dir = Dir::new();
    for len in [1 << 45, 1 << 62, u64::MAX] {
        let error = Region::create(dir.join("a"), len).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn a_full_file_system_is_no_space_and_not_a_fault() {
    const TEST: &str = "a_full_file_system_is_no_space_and_not_a_fault";
    if let Some(dir) = argument_of(TEST) {
        if !mount_tmpfs(dir.to_str().unwrap(), "size=1m") {
            println!("skipped: mounting a small tmpfs is not allowed here");
            return;
        }
        no_space(Region::create(dir.join("a"), 2 << 20), "free space");
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0, "nothing is left behind");
        let half = Region::create(dir.join("a"), 512 << 10).unwrap();
        no_space(Region::create(dir.join("b"), 600 << 10), "free space");
        half.write_at((512 << 10) - 1, b"x").unwrap();
        drop(half);
        // What the failed attempts took has been given back.
        Region::create(dir.join("b"), 900 << 10).unwrap().write_at((900 << 10) - 1, b"x").unwrap();
        return;
    }
    if !is_root() {
        println!("skipped: mounting a small tmpfs needs root");
        return;
    }
    in_child(TEST, Dir::new().path());
}

/// A group with a memory limit, under whichever version of control groups is in charge.
struct Group(PathBuf);

impl Group {
    fn new(limit: u64) -> Option<Self> {
        let name = format!("ramway-test-{}", std::process::id());
        for (root, file) in [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")] {
            let group = Self(Path::new(root).join(&name));
            if Path::new(root).join("cgroup.procs").exists()
                && std::fs::create_dir(&group.0).is_ok()
                && std::fs::write(group.0.join(file), limit.to_string()).is_ok()
            {
                return Some(group);
            }
            // Dropped here: the directory goes again.
        }
        None
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn a_control_groups_limit_is_no_space_and_not_the_oom_killer() {
    const TEST: &str = "a_control_groups_limit_is_no_space_and_not_the_oom_killer";
    if let Some(path) = argument_of(TEST) {
        let (dir, group) = (path.parent().unwrap(), std::fs::read_to_string(&path).unwrap());
        let mut procs = std::fs::File::options().write(true).open(Path::new(&group).join("cgroup.procs")).unwrap();
        procs.write_all(std::process::id().to_string().as_bytes()).unwrap();
        no_space(Region::create(dir.join("a"), 80 << 20), "control group");
        let region = Region::create(dir.join("a"), 20 << 20).unwrap();
        region.write_at((20 << 20) - 1, b"x").unwrap();
        no_space(Region::create(dir.join("b"), 60 << 20), "control group");
        return;
    }
    let Some(group) = Group::new(64 << 20) else {
        println!("skipped: making a memory control group is not allowed here");
        return;
    };
    let dir = Dir::new();
    let path = dir.join("group");
    std::fs::write(&path, group.0.to_str().unwrap()).unwrap();
    in_child(TEST, &path);
}

#[test]
fn a_file_size_limit_is_no_space_and_not_a_signal() {
    const TEST: &str = "a_file_size_limit_is_no_space_and_not_a_signal";
    if let Some(dir) = argument_of(TEST) {
        let limit = libc::rlimit { rlim_cur: 1 << 20, rlim_max: 1 << 20 };
        // SAFETY: reads the struct.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &limit) }, 0);
        no_space(Region::create(dir.join("a"), 2 << 20), "RLIMIT_FSIZE");
        assert!(Region::create(dir.join("a"), 512 << 10).is_ok());
        return;
    }
    in_child(TEST, Dir::new().path());
}

#[test]
fn locked_memory_is_locked_for_as_long_as_the_handle_lives() {
    const TEST: &str = "locked_memory_is_locked_for_as_long_as_the_handle_lives";
    let len = (32_u64 << 10).next_multiple_of(rustix::param::page_size() as u64);
    if let Some(dir) = argument_of(TEST) {
        let before = status("VmLck:");
        let region = Region::builder().lock_memory(true).create(dir.join("a"), len).unwrap();
        assert_eq!(status("VmLck:"), before + len);
        let other = Region::builder().lock_memory(true).read_only(true).open(dir.join("a")).unwrap();
        assert_eq!(status("VmLck:"), before + 2 * len);
        drop(other);
        assert_eq!(status("VmLck:"), before + len);
        drop(region);
        assert_eq!(status("VmLck:"), before);
        return;
    }
    in_child(TEST, Dir::new().path());
}

#[test]
fn the_lock_limit_is_named() {
    const TEST: &str = "the_lock_limit_is_named";
    if let Some(dir) = argument_of(TEST) {
        let limit = libc::rlimit { rlim_cur: 64 << 10, rlim_max: 64 << 10 };
        // SAFETY: reads the struct; sets this process's own limit and, as root, drops its privileges.
        unsafe {
            assert_eq!(libc::setrlimit(libc::RLIMIT_MEMLOCK, &limit), 0);
            if is_root() {
                assert_eq!(libc::setresuid(65_534, 65_534, 65_534), 0);
            }
        }
        no_space(Region::builder().lock_memory(true).create(dir.join("a"), 1 << 20), "RLIMIT_MEMLOCK is 65536");
        assert!(!dir.join("a").exists(), "what could not be held is not left behind");
        assert!(Region::create(dir.join("a"), 1 << 20).is_ok());
        return;
    }
    use std::os::unix::fs::PermissionsExt;
    let dir = Dir::new();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    in_child(TEST, dir.path());
}

#[test]
fn huge_pages_are_there_or_refused_with_the_setting_to_change() {
    let dir = Dir::new();
    let huge = Region::builder().huge_pages(true);
    match huge.create(dir.join("a"), 3 << 20) {
        Ok(region) => {
            assert_eq!((region.len(), region.capacity()), (3 << 20, 4 << 20));
            assert_eq!(region.as_ptr().addr() % (2 << 20), 0);
            let other = huge.clone().read_only(true).open(dir.join("a")).unwrap();
            region.write_at((3 << 20) - 1, b"x").unwrap();
            let mut byte = [0];
            other.read_at((3 << 20) - 1, &mut byte).unwrap();
            assert_eq!(&byte, b"x");
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
            println!("huge pages: {error}");
        }
    }
    // One that was made without them cannot get them.
    let _small = Region::create(dir.join("b"), 3 << 20).unwrap();
    assert_eq!(huge.open(dir.join("b")).unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn a_node_that_is_not_there_is_named() {
    let dir = Dir::new();
    let error = Region::builder().numa_node(999).create(dir.join("a"), 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("999"), "{error}");
    if Path::new("/sys/devices/system/node/node0").exists() {
        let region = Region::builder().numa_node(0).prefault(true).create(dir.join("a"), 1 << 20).unwrap();
        region.write_at(1_000, b"x").unwrap();
    }
}
