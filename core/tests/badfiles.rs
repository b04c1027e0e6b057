//! What is not a sound segment: a clear error from every way in, no hang, and the thing untouched.

mod support;

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::Path;
use std::time::Duration;

use ramway::layout::{BLOCK_OFFSETS, RingBlock, first_position};
use ramway::survey::{self, CleanOptions, Outcome};
use ramway::{Error, ErrorKind, Ring};
use support::{Dir, LONG};

/// Every way to come at a name, and what each says.
fn all_ways(name: &str) -> [(&'static str, Error); 6] {
    [
        ("open, receive", Ring::open(name).receiver().unwrap_err()),
        ("open, send", Ring::open(name).sender().unwrap_err()),
        ("open or create, receive", Ring::open_or_create(name).receiver().unwrap_err()),
        ("open or create, send", Ring::open_or_create(name).sender().unwrap_err()),
        ("create", Ring::create(name).receiver().unwrap_err()),
        ("create, discard", Ring::create(name).discard(true).sender().unwrap_err()),
    ]
}

/// Checks what the ways in say: `kind` where the thing would be used, `AlreadyExists` where it is in the way.
fn expect(name: &str, kind: ErrorKind) {
    for (way, error) in all_ways(name) {
        let expected = if way.starts_with("create") { ErrorKind::AlreadyExists } else { kind };
        assert_eq!(error.kind(), expected, "{way}: {error}");
        assert!(error.to_string().contains(name), "{way}: {error}");
    }
}

/// Type, inode, length and contents.
fn state(path: &str) -> (String, u64, u64, Option<Vec<u8>>) {
    let meta = std::fs::symlink_metadata(path).unwrap();
    let bytes = meta.is_file().then(|| std::fs::read(path).unwrap());
    (format!("{:?} {:o}", meta.file_type(), meta.mode()), meta.ino(), meta.size(), bytes)
}

/// A thing that is no segment at all: nobody touches it, `clean` leaves it alone, `ls` copes.
fn check_foreign(dir: &Dir, kind: ErrorKind) {
    let name = dir.at("thing");
    let before = state(&name);
    expect(&name, kind);
    assert_eq!(survey::inspect(&name).unwrap_err().kind(), kind);
    survey::ls(dir.path()).unwrap();
    let all = CleanOptions { undelivered: true, dry_run: false };
    for (_, outcome) in survey::clean(dir.path(), &all).unwrap() {
        assert!(matches!(outcome.unwrap(), Outcome::NotRamway | Outcome::Kept(_)));
    }
    assert_eq!(state(&name), before);
    assert_eq!(dir.names().iter().filter(|n| n.as_str() != "target").collect::<Vec<_>>(), ["thing"]);
}

#[test]
fn other_files_than_regular_ones() {
    type Make = fn(&str);
    let make: [(&str, Make); 5] = [
        ("directory", |at| std::fs::create_dir(at).unwrap()),
        ("socket", |at| drop(std::os::unix::net::UnixListener::bind(at).unwrap())),
        ("dangling link", |at| std::os::unix::fs::symlink("nowhere", at).unwrap()),
        ("link to itself", |at| std::os::unix::fs::symlink("thing", at).unwrap()),
        ("fifo", |at| {
            let path = std::ffi::CString::new(Path::new(at).as_os_str().as_bytes()).unwrap();
            // SAFETY: makes a file, from a string that outlives the call.
            assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
        }),
    ];
    for (what, make) in make {
        let dir = Dir::new();
        make(&dir.at("thing"));
        println!("{what}");
        check_foreign(&dir, ErrorKind::InvalidArgument);
    }
    // A device: opening one can do anything, so none is.
    assert!(std::fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    for error in [Ring::open("/dev/null").receiver().unwrap_err(), Ring::open("/dev/zero").sender().unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(error.to_string().contains("device"), "{error}");
    }
}

#[test]
fn a_link_to_a_good_segment_is_not_followed() {
    let dir = Dir::new();
    let _rx = Ring::create(dir.at("target")).receiver().unwrap();
    std::os::unix::fs::symlink("target", dir.at("thing")).unwrap();
    expect(&dir.at("thing"), ErrorKind::InvalidArgument);
    let _tx = Ring::open(dir.at("target")).sender().unwrap();
}

#[test]
fn regular_files_of_others() {
    let pages = |byte: u8, n: usize| vec![byte; n];
    let contents: [(&str, Vec<u8>); 7] = [
        ("empty", vec![]),
        ("text", b"Dear diary".to_vec()),
        ("a page of zeros", pages(0, 4096)),
        ("a MiB of ones", pages(0xFF, 1 << 20)),
        ("almost the magic", [b"RAMWAY\n\n".as_slice(), &pages(0, 8192)].concat()),
        ("half the magic", b"RAMW".to_vec()),
        ("another program's", [b"\x7fELF\x02\x01\x01\0".as_slice(), &pages(1, 8192)].concat()),
    ];
    for (what, bytes) in contents {
        let dir = Dir::new();
        std::fs::write(dir.at("thing"), bytes).unwrap();
        println!("{what}");
        check_foreign(&dir, ErrorKind::AbiMismatch);
        let found = survey::ls(dir.path()).unwrap();
        assert_eq!(found[0].segment.as_ref().unwrap_err().kind(), ErrorKind::AbiMismatch);
    }
}

/// A dead, empty ring with `change` written over it.
fn changed(change: impl FnOnce(&std::fs::File)) -> Dir {
    let dir = Dir::new();
    let name = dir.at("thing");
    drop(Ring::create(&name).capacity(8192).persistent(true).receiver().unwrap());
    let file = std::fs::OpenOptions::new().read(true).write(true).open(&name).unwrap();
    // Not persistent after all, so that only what is wrong with it keeps it.
    file.write_all_at(&0u32.to_ne_bytes(), 0x14).unwrap();
    change(&file);
    dir
}

/// Writes bytes into a dead ring's header page.
fn header(at: usize, bytes: &[u8]) -> Dir {
    changed(|file| file.write_all_at(bytes, at as u64).unwrap())
}

#[test]
fn truncated_and_grown_segments() {
    for len in [8, 64, 100, 4095, 4096, 4097, 8192, 12_287, 12_289, 1 << 20] {
        println!("{len} of 12288 bytes");
        check_foreign(&changed(|file| file.set_len(len).unwrap()), ErrorKind::Corrupt);
    }
}

#[test]
fn another_version_byte_order_kind_or_feature() {
    let cases: [(&str, usize, &[u8]); 5] = [
        ("the other byte order", 0x08, &[0x0A, 0x0B, 0x0C, 0x0D]),
        ("version 2", 0x0C, &2u16.to_ne_bytes()),
        ("version 0", 0x0C, &0u16.to_ne_bytes()),
        ("an unknown kind", 0x10, &99u32.to_ne_bytes()),
        ("an unknown required feature", 0x18, &0x8000_0000u32.to_ne_bytes()),
    ];
    for (what, at, bytes) in cases {
        println!("{what}");
        check_foreign(&header(at, bytes), ErrorKind::AbiMismatch);
    }
    check_foreign(&header(0x08, &[1, 2, 3, 4]), ErrorKind::Corrupt);
    // A later minor version and unknown optional features are fine.
    drop(Ring::open(header(0x0E, &9u16.to_ne_bytes()).at("thing")).receiver().unwrap());
    drop(Ring::open(header(0x1C, &u32::MAX.to_ne_bytes()).at("thing")).receiver().unwrap());
}

#[test]
fn a_segment_of_another_kind_is_not_what_was_asked_for() {
    let dir = Dir::new();
    let _region = ramway::Region::create(dir.at("thing"), 100).unwrap();
    for (way, error) in all_ways(&dir.at("thing")) {
        let expected = if way.starts_with("create") { ErrorKind::AlreadyExists } else { ErrorKind::InvalidArgument };
        assert_eq!(error.kind(), expected, "{way}: {error}");
        assert!(error.to_string().contains("region"), "{way}: {error}");
    }
    let _rx = Ring::create(dir.at("ring")).receiver().unwrap();
    assert_eq!(ramway::Region::open(dir.at("ring")).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn contradictory_geometry() {
    let block = BLOCK_OFFSETS[0];
    let word = |offset: usize, value: u64| header(block + offset, &value.to_ne_bytes());
    for data_offset in [0, 1, 64, 4095, 8192, 12_288, 1 << 40, u64::MAX, u64::MAX - 8191] {
        println!("data at {data_offset}");
        check_foreign(&word(0, data_offset), ErrorKind::Corrupt);
    }
    for capacity in [0, 1, 15, 16, 2048, 4097, 8191, 16_384, 1 << 30, 1 << 63, u64::MAX] {
        println!("capacity {capacity}");
        let dir = word(8, capacity);
        for (way, error) in all_ways(&dir.at("thing")) {
            let kind = error.kind();
            let fine = [ErrorKind::Corrupt, ErrorKind::AbiMismatch].contains(&kind);
            assert!(if way.starts_with("create") { kind == ErrorKind::AlreadyExists } else { fine }, "{way}: {error}");
        }
        assert_eq!(dir.names(), ["thing"]);
    }
    for align in [0u32, 1, 8, 15, 17, 24, 8192, 1 << 31, u32::MAX] {
        println!("alignment {align}");
        check_foreign(&header(block + 24, &align.to_ne_bytes()), ErrorKind::Corrupt);
    }
    for size in [0, 4096, 12_287, 12_289, u64::MAX] {
        println!("size {size}");
        check_foreign(&header(0x20, &size.to_ne_bytes()), ErrorKind::Corrupt);
    }
}

const TAIL: u64 = (BLOCK_OFFSETS[0] + std::mem::offset_of!(RingBlock, tail)) as u64;
const HEAD: u64 = (BLOCK_OFFSETS[0] + std::mem::offset_of!(RingBlock, head)) as u64;

#[test]
fn impossible_positions_at_rest() {
    let pairs: [(u64, u64); 7] = [(8193 + 15, 0), (8192 + 16, 0), (0, 16), (1, 1), (8, 0), (u64::MAX, 0), (1 << 63, 0)];
    for (tail, head) in pairs {
        println!("tail {tail}, head {head}");
        let dir = changed(|file| {
            file.write_all_at(&tail.to_ne_bytes(), TAIL).unwrap();
            file.write_all_at(&head.to_ne_bytes(), HEAD).unwrap();
        });
        let name = dir.at("thing");
        let before = state(&name);
        for result in [Ring::open(&name).receiver().map(drop), Ring::open(&name).sender().map(drop)] {
            let error = result.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            assert!(error.to_string().contains(&name), "{error}");
        }
        assert_eq!(Ring::create(&name).receiver().unwrap_err().kind(), ErrorKind::AlreadyExists);
        let seen = survey::inspect(&name).unwrap();
        assert!(seen.rings[0].as_ref().unwrap().damage.is_some());
        assert!(matches!(survey::clean_one(&name, &CleanOptions::default()).unwrap(), Outcome::Kept(_)));
        assert_eq!(state(&name), before, "nobody wrote into it, and the last one out left it");
        // It is a segment, dead, and somebody says that it may go.
        drop(Ring::create(&name).discard(true).receiver().unwrap());
        assert!(dir.names().is_empty());
    }
}

/// A ring with one message of 5 bytes in it, whose frame header is then written over.
fn with_frame(frame: &[u8]) -> Dir {
    let dir = Dir::new();
    let name = dir.at("thing");
    let mut tx = Ring::create(&name).capacity(8192).sender().unwrap();
    tx.send(1, b"hello").unwrap();
    drop(tx);
    let file = std::fs::OpenOptions::new().write(true).open(&name).unwrap();
    file.write_all_at(frame, 4096 + first_position(16)).unwrap();
    dir
}

#[test]
fn impossible_lengths() {
    for len in [17u32, 8192, 1 << 20, i32::MAX as u32, i32::MAX as u32 - 16, 1 << 31, u32::MAX, u32::MAX - 15] {
        println!("length {len}");
        let dir = with_frame(&len.to_ne_bytes());
        let name = dir.at("thing");
        let seen = survey::inspect(&name).unwrap();
        let ring = seen.rings[0].as_ref().unwrap();
        assert!(ring.damage.is_some() && ring.undelivered.is_none());
        let mut rx = Ring::open(&name).receiver().unwrap();
        assert_eq!(rx.try_recv().unwrap_err().kind(), ErrorKind::Corrupt);
        assert_eq!(rx.recv_timeout(LONG).unwrap_err().kind(), ErrorKind::Corrupt, "it stays dead");
        assert_eq!(rx.recv_into(&mut Vec::new()).unwrap_err().kind(), ErrorKind::Corrupt);
        drop(rx);
        assert_eq!(dir.names(), ["thing"], "what is not understood is not thrown away");
    }
}

/// Somebody scribbles over the words of a ring that is in use: whatever it was, it ends in an answer.
#[test]
fn scribbling_over_live_words() {
    let hostile = [0, 1, 15, 16, 8191, 8192, 8208, 1 << 31, 1 << 32, 1 << 63, u64::MAX, u64::MAX - 15];
    for at in [TAIL, HEAD] {
        for value in hostile {
            let dir = Dir::new();
            let name = dir.at("thing");
            let mut tx = Ring::create(&name).capacity(8192).sender().unwrap();
            let mut rx = Ring::open(&name).receiver().unwrap();
            tx.send(0, b"hello").unwrap();
            assert_eq!(&*rx.recv().unwrap(), b"hello");
            let file = std::fs::OpenOptions::new().write(true).open(&name).unwrap();
            file.write_all_at(&value.to_ne_bytes(), at).unwrap();
            let fair = |result: ramway::Result<()>| match result {
                Ok(()) => true,
                Err(e) => {
                    use ErrorKind::{Corrupt, Empty, Full, TimedOut};
                    [Corrupt, Empty, Full, TimedOut].contains(&e.kind())
                }
            };
            for _ in 0..20 {
                assert!(fair(rx.try_recv().map(|_| ())));
                assert!(fair(tx.try_send(0, &[1; 1000])));
            }
            assert!(fair(rx.recv_timeout(Duration::from_millis(1)).map(|_| ())));
            assert!(fair(tx.send_timeout(0, &[1; 8000], Duration::from_millis(1))));
            survey::inspect(&name).unwrap();
        }
    }
}

#[test]
fn memory_that_cannot_be_a_ring() {
    let map = |len: usize, flags: i32| {
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh anonymous mapping.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), len, prot, flags | libc::MAP_ANONYMOUS, -1, 0) };
        assert_ne!(at, libc::MAP_FAILED);
        at.cast::<u8>()
    };
    let len = 5 * 65_536;
    // SAFETY: the mappings are as long as said, and only this test uses them.
    unsafe {
        let private = map(len, libc::MAP_PRIVATE);
        Ring::format(private, len, 16).unwrap();
        let refused = Ring::attach_sender(private, len).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unsupported, "{refused}");
        assert!(refused.to_string().contains("MAP_SHARED"), "{refused}");

        let shared = map(len, libc::MAP_SHARED);
        let kind = |result: ramway::Result<ramway::Receiver>| result.unwrap_err().kind();
        assert_eq!(kind(Ring::attach_receiver(shared, len)), ErrorKind::AbiMismatch, "not formatted");
        assert_eq!(kind(Ring::attach_receiver(std::ptr::null_mut(), len)), ErrorKind::InvalidArgument);
        assert_eq!(kind(Ring::attach_receiver(shared.add(64), len - 64)), ErrorKind::InvalidArgument);
        assert_eq!(Ring::format(shared, 4096, 16).unwrap_err().kind(), ErrorKind::InvalidArgument);
        assert_eq!(Ring::format(shared, len, 24).unwrap_err().kind(), ErrorKind::InvalidArgument);
        let capacity = Ring::format(shared, len, 64).unwrap();
        assert!(capacity.is_power_of_two() && capacity as usize <= len && capacity as usize > len / 4);
        assert_eq!(kind(Ring::attach_receiver(shared, 65_536 * 2)), ErrorKind::Corrupt, "the ring is longer");
        let mut tx = Ring::attach_sender(shared, len).unwrap();
        let mut rx = Ring::attach_receiver(shared, len).unwrap();
        assert_eq!((tx.align(), tx.capacity() as u64), (64, capacity));
        // The handles have mappings of their own.
        assert_eq!(libc::munmap(shared.cast(), len), 0);
        for n in 0..200u32 {
            tx.send(n, &vec![n as u8; 3000]).unwrap();
            let message = rx.recv_timeout(LONG).unwrap();
            assert_eq!((message.type_id(), &*message), (n, &vec![n as u8; 3000][..]));
        }
        tx.close().unwrap();
        assert_eq!(rx.recv_timeout(LONG).unwrap_err().kind(), ErrorKind::Closed);
    }
}
