//! The traits of `tokio` that go with those of `std::io`: the same cursor, never pending.

use crate::buffer::Buffer;
use std::io::{self, BufRead, IoSlice, Seek, SeekFrom, Write};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncBufRead, AsyncRead, AsyncSeek, AsyncWrite, ReadBuf};

/// As [`Read`](io::Read): what is written from the cursor on. (To fill a buffer from an `AsyncRead`, see its
/// [`BufMut`](bytes::BufMut).)
///
/// ```
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let pool = ramway_pool::BufferPool::new();
/// let (mut client, mut server) = tokio::io::duplex(64);
/// client.write_all(b"hello").await?;
///
/// let mut buffer = pool.get(4096);
/// server.read_buf(&mut buffer).await?; // appends; nothing is zeroed before
/// let mut text = String::new();
/// AsyncReadExt::read_to_string(&mut buffer, &mut text).await?; // from the cursor, which is at the start
/// assert_eq!(text, "hello");
/// # Ok::<(), std::io::Error>(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[cfg_attr(docsrs, doc(cfg(feature = "tokio")))]
impl AsyncRead for Buffer {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let unread = self.fill_buf()?;
        let count = unread.len().min(to.remaining());
        to.put_slice(&unread[..count]);
        BufRead::consume(&mut *self, count);
        Poll::Ready(Ok(()))
    }
}

/// As [`BufRead`].
#[cfg_attr(docsrs, doc(cfg(feature = "tokio")))]
impl AsyncBufRead for Buffer {
    fn poll_fill_buf(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        Poll::Ready(self.get_mut().fill_buf())
    }

    fn consume(mut self: Pin<&mut Self>, count: usize) {
        BufRead::consume(&mut *self, count);
    }
}

/// As [`Write`]: at the cursor, as far as the capacity, and `Ok(0)` there.
///
/// ```
/// use tokio::io::AsyncWriteExt;
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let pool = ramway_pool::BufferPool::new();
/// let mut buffer = pool.get(5);
/// buffer.write_all(b"hello").await?;
/// assert!(buffer.write_all(b"!").await.is_err());
/// assert_eq!(buffer, b"hello");
/// # Ok::<(), std::io::Error>(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[cfg_attr(docsrs, doc(cfg(feature = "tokio")))]
impl AsyncWrite for Buffer {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(self.write(bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(self.write_vectored(slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Does nothing: more can be written after it.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// As [`Seek`].
///
/// ```
/// use tokio::io::{AsyncSeekExt, AsyncWriteExt, SeekFrom};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let pool = ramway_pool::BufferPool::new();
/// let mut buffer = pool.get(4);
/// buffer.seek(SeekFrom::Start(2)).await?;
/// buffer.write_all(b"ab").await?;
/// assert_eq!(buffer, b"\0\0ab");
/// # Ok::<(), std::io::Error>(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[cfg_attr(docsrs, doc(cfg(feature = "tokio")))]
impl AsyncSeek for Buffer {
    fn start_seek(mut self: Pin<&mut Self>, to: SeekFrom) -> io::Result<()> {
        self.seek(to).map(drop)
    }

    fn poll_complete(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<u64>> {
        Poll::Ready(Ok(self.position()))
    }
}
