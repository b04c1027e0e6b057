//! Buffers in tasks: filled without zeroing, and read, written and sought as with `std::io`.
#![cfg(feature = "tokio")]

use ramway_pool::{Buffer, BufferPool};
use std::io::{ErrorKind, IoSlice, SeekFrom};
use std::mem::MaybeUninit;
use tokio::io::{self, AsyncBufReadExt, AsyncReadExt, AsyncSeekExt, AsyncWrite, AsyncWriteExt};

/// What an owner before leaves behind.
const OLD: u8 = 0xa5;

/// A buffer whose memory somebody had before and filled with [`OLD`].
fn used(pool: &BufferPool, len: usize) -> Buffer {
    let mut first = pool.get_uninit(len);
    first.fill(MaybeUninit::new(OLD));
    drop(first);
    pool.get(len)
}

#[tokio::test]
async fn reading_appends_what_came() {
    let pool = BufferPool::new();
    let (mut client, mut server) = io::duplex(64);
    let mut buffer = used(&pool, 8);
    client.write_all(b"hello").await.unwrap();
    assert_eq!(server.read_buf(&mut buffer).await.unwrap(), 5);
    assert_eq!((&buffer[..], buffer.position()), (&b"hello"[..], 0));
    client.write_all(b", world").await.unwrap();
    assert_eq!(server.read_buf(&mut buffer).await.unwrap(), 3, "as much as there is room for");
    assert_eq!(server.read_buf(&mut buffer).await.unwrap(), 0, "full");
    assert_eq!(buffer, b"hello, w");
    buffer.clear();
    assert_eq!(server.read_buf(&mut buffer).await.unwrap(), 4);
    assert_eq!(buffer, b"orld");
    drop(client);
    assert_eq!(server.read_buf(&mut buffer).await.unwrap(), 0, "closed");
    assert_eq!(buffer, b"orld");
}

#[tokio::test]
async fn a_buffer_is_read_from_its_cursor() {
    let pool = BufferPool::new();
    let mut buffer = used(&pool, 100);
    buffer.extend_from_slice(b"one\ntwo\nthree").unwrap();
    let mut line = String::new();
    assert_eq!(buffer.read_line(&mut line).await.unwrap(), 4);
    let mut small = [0; 2];
    assert_eq!(buffer.read(&mut small).await.unwrap(), 2);
    assert_eq!((line.as_str(), &small, buffer.position()), ("one\n", b"tw", 6));
    let mut rest = Vec::new();
    buffer.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, b"o\nthree");
    assert_eq!(buffer.read(&mut small).await.unwrap(), 0);
    buffer.set_position(u64::MAX);
    assert_eq!(buffer.read(&mut small).await.unwrap(), 0);
    assert_eq!(buffer.stream_position().await.unwrap(), u64::MAX);

    // All of it to somebody else.
    buffer.rewind().await.unwrap();
    let mut to = Vec::new();
    assert_eq!(io::copy(&mut buffer, &mut to).await.unwrap(), 13);
    assert_eq!(to, b"one\ntwo\nthree");
}

#[tokio::test]
async fn a_write_overwrites_and_never_grows() {
    let pool = BufferPool::new();
    let mut buffer = used(&pool, 8);
    assert_eq!(buffer.seek(SeekFrom::Start(2)).await.unwrap(), 2);
    buffer.write_all(b"cdef").await.unwrap();
    assert_eq!(buffer, b"\0\0cdef");
    assert_eq!(buffer.seek(SeekFrom::End(-4)).await.unwrap(), 2);
    assert_eq!(buffer.write(b"CD").await.unwrap(), 2);
    assert_eq!(buffer.write_vectored(&[IoSlice::new(b"E"), IoSlice::new(b"FGHIJ")]).await.unwrap(), 4);
    assert_eq!(buffer, b"\0\0CDEFGH");
    assert_eq!(buffer.write_all(b"I").await.unwrap_err().kind(), ErrorKind::WriteZero);
    buffer.flush().await.unwrap();
    buffer.shutdown().await.unwrap();
    assert!(buffer.is_write_vectored());
    assert_eq!(buffer.seek(SeekFrom::Current(-9)).await.unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(buffer.stream_position().await.unwrap(), 8);
}

#[tokio::test]
async fn copying_into_a_buffer_stops_at_its_capacity() {
    let pool = BufferPool::new();
    let mut buffer = used(&pool, 100_000);
    let error = io::copy(&mut io::repeat(1).take(200_000), &mut buffer).await.unwrap_err();
    assert_eq!((error.kind(), buffer.len()), (ErrorKind::WriteZero, 100_000));
    assert!(buffer.iter().all(|&byte| byte == 1));
}

/// A task holds a buffer while it waits, on whatever thread it goes on, and gives it back when it is cancelled.
#[tokio::test]
async fn a_cancelled_task_gives_its_buffer_back() {
    let pool = BufferPool::new();
    let own = pool.clone();
    let (_client, mut server) = io::duplex(64);
    let task = tokio::spawn(async move {
        let mut buffer = own.get(4096);
        server.read_buf(&mut buffer).await.unwrap();
    });
    while pool.stats().in_use_bytes == 0 {
        tokio::task::yield_now().await;
    }
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    assert_eq!((pool.stats().in_use_bytes, pool.len()), (0, 1));
}
