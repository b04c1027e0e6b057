//! Messages that are written in place, one after another, and published together.

use super::Sender;
use super::frame::ask_ahead;
use super::half::Half;
use super::log::{Log, Ring};
use super::producer::Producer;
use super::sender::user_type_id;
use crate::Result;
use crate::wait::WaitLimit;

/// Messages that are written in place, one after another, and become visible together: when this is dropped, at
/// [`flush`](Self::flush), or when the ring is full and the sender has to wait.
///
/// Made by [`Sender::batch`]. The same as [`commit_unflushed`](crate::Slot::commit_unflushed) and
/// [`Sender::flush`], but the sender's position stays in a register from message to message: for small messages
/// that is 1.5 times as fast (docs/adr/0018). If it is forgotten (`mem::forget`), what was not flushed was never sent.
pub struct SendBatch<'a, L: Log = Ring> {
    half: &'a mut Half<Producer<L>>,
    /// The producer's position, its tag, and what each frame advances, ahead of `half.hot`'s. Nothing that is not inlined
    /// gets a pointer to these three and the next, or they would be stored for each message.
    tail: u64,
    tag: u64,
    commit: L::Commit,
    /// How far `tail` may go.
    limit: u64,
    /// Copies of the producer's fields that never change; `mask` is `capacity - 1`.
    data: *mut u8,
    mask: u64,
    max_len: u64,
    align: u32,
}

// SAFETY: a unique borrow of a sender, which may move between threads; `data` leads where that sender's does.
unsafe impl<L: Log> Send for SendBatch<'_, L> {}

impl<L: Log> std::fmt::Debug for SendBatch<'_, L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SendBatch").field("unflushed", &self.tail.wrapping_sub(self.half.hot.published())).finish()
    }
}

impl<L: Log> Sender<L> {
    /// Messages to be written in place and published together.
    ///
    /// ```
    /// # fn main() -> ramway::Result<()> {
    /// let (mut tx, mut rx) = ramway::Ring::pair(4096)?;
    /// let mut batch = tx.batch();
    /// for n in 0..3u8 {
    ///     batch.write(7, 0, 100, |bytes| bytes.fill(n))?;
    /// }
    /// assert!(rx.try_recv().is_err());
    /// drop(batch);
    /// let sums: Vec<u32> = rx.recv_batch(3)?.iter().map(|m| m.iter().map(|&b| u32::from(b)).sum()).collect();
    /// assert_eq!(sums, [0, 100, 200]);
    /// # Ok(()) }
    /// ```
    #[inline(always)]
    pub fn batch(&mut self) -> SendBatch<'_, L> {
        let half = &mut *self.half;
        let hot = &half.hot;
        SendBatch {
            tail: hot.tail,
            tag: hot.tag,
            commit: hot.commit,
            limit: hot.head.wrapping_add(hot.capacity),
            data: hot.data,
            mask: hot.capacity - 1,
            max_len: hot.max_len,
            align: hot.align,
            half,
        }
    }
}

impl<L: Log> SendBatch<'_, L> {
    /// Adds a message of `len` bytes that `fill` writes, over whatever an earlier message left there, waiting for room
    /// as long as it takes. Before it waits, all before it is published.
    ///
    /// # Errors
    /// As for [`Sender::send_tagged`]. Nothing of this message was sent; those before it stay in the batch.
    #[inline(always)]
    pub fn write(&mut self, type_id: u32, tag: u64, len: usize, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        user_type_id(type_id)?;
        // A length that wraps here or is too long does not pass: `try_reserve` says which error it is.
        let size = L::frame_size((len as u64).min(u64::from(u32::MAX)), self.align);
        if self.half.hot.state_or_peer_changed()
            || len as u64 > self.max_len
            || size > self.limit.wrapping_sub(self.tail)
        {
            reserve(self.half, self.tail, self.tag, self.commit, len)?;
            let hot = &self.half.hot;
            (self.tail, self.limit) = (hot.tail, hot.head.wrapping_add(hot.capacity));
        }
        // SAFETY: as in `Producer::payload`.
        let to = unsafe { self.data.add((self.tail & self.mask) as usize + L::HEADER as usize) };
        // SAFETY: the frame fits between `tail` and `limit`, which is what the consumer has given back; mapped memory
        // is never uninitialised, and these bytes are this side's alone until they are published.
        fill(unsafe { std::slice::from_raw_parts_mut(to, len) });
        // SAFETY: as above; the header stands right before the payload.
        unsafe { L::write_header(&mut self.commit, self.tail, to, len as u64, type_id, tag) };
        self.tail = self.tail.wrapping_add(size);
        self.tag = tag;
        let next = (self.tail & self.mask) + L::HEADER;
        ask_ahead(self.data.wrapping_add(next as usize), len as u64);
        Ok(())
    }

    /// Makes every message so far visible. Never waits.
    #[inline(always)]
    pub fn flush(&mut self) {
        self.half.hot.resume(self.tail, self.tag, self.commit);
        self.half.hot.publish();
    }
}

impl<L: Log> Drop for SendBatch<'_, L> {
    #[inline(always)]
    fn drop(&mut self) {
        self.flush();
    }
}

/// Room for a payload of `len` bytes after the messages of a batch, which end at `tail`.
#[cold]
#[inline(never)]
fn reserve<L: Log>(half: &mut Half<Producer<L>>, tail: u64, tag: u64, commit: L::Commit, len: usize) -> Result<()> {
    half.hot.resume(tail, tag, commit);
    half.reserve(len, WaitLimit::Forever).map(|_| ())
}
