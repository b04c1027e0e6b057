//! Buffers that the system itself reads into and writes from: tokio-uring, with a real file.
#![cfg(all(feature = "uring", target_os = "linux"))]

use ramway_pool::{Buffer, BufferPool};
use std::future::Future;
use std::mem::MaybeUninit;
use std::path::PathBuf;
use std::{env, fs, io, process};
use tokio_uring::buf::{BoundedBuf, IoBuf, IoBufMut};
use tokio_uring::fs::File;

/// What an owner before leaves behind.
const OLD: u8 = 0xa5;

/// A buffer whose memory somebody had before and filled with [`OLD`].
fn used(pool: &BufferPool, len: usize) -> Buffer {
    let mut first = pool.get_uninit(len);
    first.fill(MaybeUninit::new(OLD));
    drop(first);
    pool.get(len)
}

/// Runs a task with a ring; says so where the system allows none.
fn with_ring(test: &str, task: impl Future<Output = io::Result<()>>) {
    match tokio_uring::Runtime::new(&tokio_uring::builder()) {
        Ok(runtime) => runtime.block_on(task).unwrap(),
        Err(error) => {
            let known = [libc::ENOSYS, libc::EPERM, libc::EACCES, libc::ENOMEM];
            assert!(error.raw_os_error().is_some_and(|code| known.contains(&code)), "{error}");
            eprintln!("SKIPPED {test}: no io_uring here: {error}");
        }
    }
}

struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str, bytes: &[u8]) -> Self {
        let path = env::temp_dir().join(format!("ramway-pool-uring-{name}-{}", process::id()));
        fs::write(&path, bytes).unwrap();
        Self(path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 127) as u8).collect()
}

#[test]
fn a_file_is_read_into_a_buffer() {
    let pool = BufferPool::new();
    let bytes = pattern(300_000);
    let file = Temporary::new("read", &bytes);
    with_ring("a_file_is_read_into_a_buffer", async {
        let from = File::open(&file.0).await?;
        let buffer = used(&pool, 400_000);
        let at = buffer.as_ptr();
        let (result, buffer) = from.read_at(buffer, 0).await;
        assert_eq!((result?, buffer.len(), buffer.capacity()), (300_000, 300_000, 400_000));
        assert_eq!((buffer.as_ptr(), buffer.position()), (at, 0), "moved, and still where it was");
        assert!(buffer == bytes);

        // Less than was there: the rest is this owner's own, and stays.
        let (result, mut buffer) = from.read_at(buffer, 299_990).await;
        assert_eq!((result?, buffer.len()), (10, 300_000));
        assert!(buffer[..10] == bytes[299_990..] && buffer[10..] == bytes[10..]);

        // A slice from the end on appends.
        buffer.truncate(100);
        let (result, slice) = from.read_at(buffer.slice(100..150), 100).await;
        assert_eq!(result?, 50);
        let buffer = slice.into_inner();
        assert!(buffer.len() == 150 && buffer[10..] == bytes[10..150]);

        // Past the end of the file nothing is read, and a buffer that was empty still is.
        drop(buffer);
        let (result, buffer) = from.read_at(used(&pool, 400_000), 300_000).await;
        assert_eq!((result?, buffer.len()), (0, 0));
        let (result, buffer) = from.read_exact_at(used(&pool, 4096), 4096).await;
        result?;
        assert!(buffer == bytes[4096..8192]);
        from.close().await
    });
    assert_eq!(pool.stats().in_use_bytes, 0);
}

#[test]
fn a_buffer_is_written_to_a_file() {
    let pool = BufferPool::new();
    let file = Temporary::new("write", b"");
    with_ring("a_buffer_is_written_to_a_file", async {
        let to = File::create(&file.0).await?;
        let mut buffer = used(&pool, 4096);
        buffer.extend_from_slice(b"hello, world").unwrap();
        let (result, buffer) = to.write_at(buffer, 0).submit().await;
        assert_eq!(result?, 12, "what is written in it, not its capacity");
        let (result, slice) = to.write_at(buffer.slice(7..12), 12).submit().await;
        assert_eq!(result?, 5);
        drop(slice);
        to.close().await?;
        assert_eq!(fs::read(&file.0)?, b"hello, worldworld");
        Ok(())
    });
    assert_eq!(pool.stats().in_use_bytes, 0);
}

/// An operation that nobody waits for any more keeps its buffer until the system is done with it.
#[test]
fn a_cancelled_read_keeps_its_buffer_until_it_is_done() {
    let pool = BufferPool::new();
    with_ring("a_cancelled_read_keeps_its_buffer_until_it_is_done", async {
        let (reader, mut writer) = io::pipe()?;
        let reader = File::from_std(fs::File::from(std::os::fd::OwnedFd::from(reader)));
        let buffer = used(&pool, 4096);
        let at = buffer.as_ptr();
        let mut read = Box::pin(reader.read_at(buffer, 0));
        let waker = std::task::Waker::noop();
        assert!(read.as_mut().poll(&mut std::task::Context::from_waker(waker)).is_pending());
        drop(read);
        assert_eq!(pool.stats().in_use_bytes, 4096, "the system may still write to it");
        assert_ne!(pool.get(4096).as_ptr(), at, "so nobody else gets it");
        io::Write::write_all(&mut writer, b"late")?;
        drop(writer);
        for _ in 0..1000 {
            if pool.stats().in_use_bytes == 0 {
                break;
            }
            tokio::task::yield_now().await;
            let (result, _) = File::open("/dev/null").await?.read_at(vec![0; 1], 0).await;
            result?;
        }
        reader.close().await
    });
    assert_eq!(pool.stats().in_use_bytes, 0);
}

#[test]
fn what_is_initialised_is_the_length() {
    let pool = BufferPool::new();
    let mut buffer = used(&pool, 100);
    assert_eq!((IoBuf::bytes_init(&buffer), IoBuf::bytes_total(&buffer)), (0, 100));
    assert_eq!(IoBuf::stable_ptr(&buffer), buffer.as_ptr());
    assert_eq!(IoBufMut::stable_mut_ptr(&mut buffer).cast_const(), buffer.as_ptr());
    buffer.extend_from_slice(b"abc").unwrap();
    // SAFETY: no more than is initialised.
    unsafe { IoBufMut::set_init(&mut buffer, 2) };
    assert_eq!(buffer, b"abc");
    // A slice can begin in the initialised part, or right behind it.
    let slice = buffer.slice(3..);
    assert_eq!(slice.bytes_init(), 0);
    let buffer = slice.into_inner();
    assert!(std::panic::catch_unwind(|| buffer.slice(4..)).is_err());
}
