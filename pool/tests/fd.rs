//! What a buffer takes from a descriptor: files, parts of them by several threads, pipes, and what the system refuses.
#![cfg(all(unix, not(miri)))]

use ramway_pool::{Buffer, BufferPool};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

/// What an owner before leaves behind.
const OLD: u8 = 0xa5;

/// A buffer whose memory somebody had before and filled with [`OLD`].
fn used(pool: &BufferPool, len: usize) -> Buffer {
    let mut first = pool.get_uninit(len);
    first.fill(MaybeUninit::new(OLD));
    let at = first.as_mut_ptr();
    drop(first);
    let second = pool.get(len);
    assert_eq!(second.as_ptr(), at.cast_const(), "the same memory");
    second
}

/// A file that has no name any more.
fn file(bytes: &[u8]) -> File {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("ramway-pool-io-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let path = std::env::temp_dir().join(name);
    fs::write(&path, bytes).unwrap();
    let file = File::open(&path).unwrap();
    fs::remove_file(&path).unwrap();
    file
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 127) as u8).collect()
}

#[test]
fn a_file_is_read_where_it_stands() {
    let pool = BufferPool::new();
    let bytes = pattern(300_000);
    let file = file(&bytes);
    let mut buffer = used(&pool, 400_000);
    buffer.set_position(7);
    assert_eq!(buffer.read_fd(&file, 0).unwrap(), 0);
    assert_eq!(buffer.read_fd(&file, 1000).unwrap(), 1000);
    assert_eq!(buffer.read_fd(&file, 399_000).unwrap(), 299_000);
    assert_eq!(buffer.read_fd(&file, 100_000).unwrap(), 0, "the end");
    assert_eq!(buffer.position(), 7);
    assert!(buffer == bytes);
    assert_eq!(buffer.read_fd(&file, 100_001).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert!(buffer == bytes);
}

#[test]
fn threads_read_parts_of_one_file() {
    let pool = BufferPool::new();
    let bytes = pattern(1 << 20);
    let file = file(&bytes);
    thread::scope(|scope| {
        for part in 0..8_usize {
            let (pool, file, bytes) = (&pool, &file, &bytes);
            scope.spawn(move || {
                for len in [1, 4096, 1 << 17] {
                    let at = part << 17;
                    let mut buffer = used(pool, len);
                    buffer.read_exact_fd_at(file, at as u64, len).unwrap();
                    assert!(buffer == bytes[at..at + len]);
                }
            });
        }
    });
    let mut first = pool.get(1);
    assert_eq!(first.read_fd(&file, 1).unwrap(), 1);
    assert_eq!(first, bytes[..1], "the file stands where it stood");
}

#[test]
fn a_file_that_is_too_short_leaves_the_length() {
    let pool = BufferPool::new();
    let file = file(&pattern(1000));
    let mut buffer = used(&pool, 2000);
    buffer.extend_from_slice(b"ab").unwrap();
    let error = buffer.read_exact_fd_at(&file, 500, 501).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
    assert_eq!(error.to_string(), "501 bytes from byte 500 on: the file ends after 500 of them");
    assert_eq!(buffer, b"ab");
    buffer.read_exact_fd_at(&file, 500, 500).unwrap();
    buffer.read_exact_fd_at(&file, u64::MAX, 0).unwrap();
    assert_eq!(buffer.len(), 502);
    assert_eq!(buffer.read_fd_at(&file, 1000, 1).unwrap(), 0);
    for offset in [1 << 63, u64::MAX] {
        assert_eq!(buffer.read_fd_at(&file, offset, 1).unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(buffer.read_exact_fd_at(&file, offset, 10).unwrap_err().kind(), ErrorKind::InvalidInput);
    }
    let error = buffer.read_exact_fd_at(&file, 0, 1499).unwrap_err();
    assert_eq!((error.kind(), buffer.len()), (ErrorKind::InvalidInput, 502));
}

#[test]
fn a_pipe_gives_what_it_has() {
    let pool = BufferPool::new();
    let (reader, mut writer) = io::pipe().unwrap();
    let mut buffer = used(&pool, 100_000);
    writer.write_all(b"some").unwrap();
    assert_eq!(buffer.read_fd(&reader, 100_000).unwrap(), 4);
    let waiting = thread::spawn(move || {
        thread::sleep(Duration::from_millis(20));
        writer.write_all(b"thing").unwrap();
    });
    assert_eq!(buffer.read_fd(&reader, 10).unwrap(), 5);
    waiting.join().unwrap();
    assert_eq!(buffer.read_fd(&reader, 10).unwrap(), 0, "closed");
    assert_eq!(buffer, b"something");
}

#[test]
fn what_the_system_refuses_changes_nothing() {
    let pool = BufferPool::new();
    let (reader, writer) = io::pipe().unwrap();
    let mut buffer = pool.get_uninit(10).write_from_slice(b"ab");
    // SAFETY: sets a flag of a pipe that is this test's.
    assert_eq!(unsafe { libc::fcntl(reader.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) }, 0);
    assert_eq!(buffer.read_fd(&reader, 8).unwrap_err().kind(), ErrorKind::WouldBlock);
    // Not for reading; and a pipe has no offsets.
    assert_eq!(buffer.read_fd(&writer, 8).unwrap_err().raw_os_error(), Some(libc::EBADF));
    assert_eq!(buffer.read_fd_at(&reader, 0, 8).unwrap_err().raw_os_error(), Some(libc::ESPIPE));
    let directory = File::open(".").unwrap();
    assert_eq!(buffer.read_fd(&directory, 8).unwrap_err().raw_os_error(), Some(libc::EISDIR));
    assert_eq!(buffer, b"ab");
}

#[cfg(target_os = "linux")]
#[test]
fn direct_reads_go_into_aligned_buffers() {
    let pool = BufferPool::builder().alignment(4096).build().unwrap();
    let path = std::env::current_exe().unwrap();
    let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: a C string.
    let fd = unsafe { libc::open(name.as_ptr(), libc::O_RDONLY | libc::O_DIRECT | libc::O_CLOEXEC) };
    if fd < 0 {
        let error = io::Error::last_os_error();
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL), "{error}");
        eprintln!("SKIPPED: the file system of {} has no O_DIRECT", path.display());
        return;
    }
    // SAFETY: just opened.
    let file = unsafe { OwnedFd::from_raw_fd(fd) };
    let mut buffer = used(&pool, 65536);
    buffer.read_exact_fd_at(&file, 4096, 8192).unwrap();
    buffer.read_exact_fd_at(&file, 12288, 4096).unwrap();
    assert!(buffer == fs::read(path).unwrap()[4096..16384]);
}
