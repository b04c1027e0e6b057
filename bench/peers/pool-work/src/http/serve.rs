//! One thread of a server: what it does for a request, and whose memory the bytes of it are in.

use crate::Result;
use crate::random::zipf;
use ramway_pool::{Buffer, BufferPool, Stats};
use std::collections::VecDeque;
use std::hint::black_box;
use std::ops::{Deref, DerefMut};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError};
use std::time::Duration;

/// Bytes at the beginning of each buffer: whose request they are of, and how many bytes follow.
pub const STAMP: usize = 16;

/// Where buffers come from.
pub trait Memory: Clone + Send + 'static {
    /// Its buffers, all bytes written.
    type Bytes: Deref<Target = [u8]> + DerefMut + Send + 'static;
    /// A buffer with these bytes in it.
    fn filled(&self, bytes: &[u8]) -> Result<Self::Bytes>;
    /// What a pool says of itself.
    fn stats(&self) -> Option<Stats> {
        None
    }
}

impl Memory for BufferPool {
    type Bytes = Buffer;

    #[inline]
    fn filled(&self, bytes: &[u8]) -> Result<Buffer> {
        Ok(self.get_uninit(bytes.len()).write_from_slice(bytes))
    }

    fn stats(&self) -> Option<Stats> {
        Some(self.stats())
    }
}

/// `Vec::with_capacity` for each buffer.
#[derive(Clone)]
pub struct WithCapacity;

impl Memory for WithCapacity {
    type Bytes = Vec<u8>;

    #[inline]
    fn filled(&self, bytes: &[u8]) -> Result<Vec<u8>> {
        let mut vec = Vec::with_capacity(bytes.len());
        vec.extend_from_slice(bytes);
        Ok(vec)
    }
}

/// `vec![0; n]` for each buffer: what those write who then read into it.
#[derive(Clone)]
pub struct Zeroed;

impl Memory for Zeroed {
    type Bytes = Vec<u8>;

    #[inline]
    fn filled(&self, bytes: &[u8]) -> Result<Vec<u8>> {
        // Not to be seen through: the two must not become one allocation without zeros.
        let mut vec = black_box(vec![0; bytes.len()]);
        vec.copy_from_slice(bytes);
        Ok(vec)
    }
}

/// What all threads do.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// Bytes of the smallest buffer.
    pub smallest: usize,
    /// Bytes of the largest body.
    pub largest: usize,
    /// Bodies that a thread holds at a time.
    pub alive: usize,
    /// One of so many replies is sent by another thread; 0: none.
    pub handed: u64,
    /// How long a request waits for its sender.
    pub wait: Duration,
}

impl Work {
    /// Bytes of the largest header.
    fn largest_header(&self) -> usize {
        (16 * self.smallest).min(self.largest)
    }
}

/// How many lengths a thread goes through before it begins again: odd, so that they meet in other pairs each time.
const LENGTHS: usize = 8191;
/// How many replies of others a thread sends for each request of its own, at most.
const INBOX: usize = 4;

/// A thread of the server.
pub struct Server<M: Memory> {
    memory: M,
    work: Work,
    number: u64,
    /// What came from the network.
    payload: Vec<u8>,
    headers: Vec<usize>,
    bodies: Vec<usize>,
    replies: Vec<usize>,
    held: VecDeque<M::Bytes>,
    inbox: Receiver<M::Bytes>,
    others: Vec<SyncSender<M::Bytes>>,
    /// Requests so far.
    pub requests: u64,
    /// Bytes of all buffers so far.
    pub bytes: u64,
    /// Replies that another thread sent.
    pub handed: u64,
    seen: u64,
}

fn stamp(bytes: &mut [u8], request: u64) {
    let len = bytes.len() as u64;
    bytes[..8].copy_from_slice(&request.to_ne_bytes());
    bytes[8..STAMP].copy_from_slice(&len.to_ne_bytes());
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_ne_bytes(word)
}

impl<M: Memory> Server<M> {
    /// Thread `number`, which sends to all of `others` in turn and receives from them.
    pub fn new(
        memory: M,
        work: Work,
        number: u64,
        inbox: Receiver<M::Bytes>,
        others: Vec<SyncSender<M::Bytes>>,
    ) -> Self {
        let lengths = |what, largest| zipf(number * 3 + what, work.smallest, largest, LENGTHS - what as usize * 2);
        Self {
            payload: (0..work.largest.max(STAMP)).map(|at| (at as u64 * 31 + number) as u8).collect(),
            headers: lengths(0, work.largest_header()),
            bodies: lengths(1, work.largest),
            replies: lengths(2, work.largest),
            held: VecDeque::with_capacity(work.alive + 1),
            memory,
            work,
            number,
            inbox,
            others,
            requests: 0,
            bytes: 0,
            handed: 0,
            seen: 0,
        }
    }

    /// Whose request `n` is, for all threads.
    fn name(&self, n: u64) -> u64 {
        n << 8 | self.number
    }

    fn receive(&mut self, len: usize) -> Result<M::Bytes> {
        let mut bytes = self.memory.filled(&self.payload[..len])?;
        stamp(&mut bytes, self.name(self.requests));
        self.bytes += len as u64;
        Ok(bytes)
    }

    /// Looks at one word of each line of the processor's cache, as parsing and checking would.
    fn look(&mut self, bytes: &[u8]) {
        let lines = bytes.chunks_exact(64).map(|line| word(line, 0));
        self.seen = lines.fold(self.seen, u64::wrapping_add);
    }

    /// One request.
    ///
    /// # Errors
    /// No memory; a buffer that another thread handed over is not what it was.
    pub fn serve(&mut self) -> Result<()> {
        let pick = |lengths: &[usize], n: u64| lengths[(n % lengths.len() as u64) as usize];
        let n = self.requests;
        let header = self.receive(pick(&self.headers, n))?;
        if !self.work.wait.is_zero() {
            std::thread::sleep(self.work.wait);
        }
        let body = self.receive(pick(&self.bodies, n))?;
        self.look(&header);
        self.look(&body);
        self.held.push_back(body);
        if self.held.len() > self.work.alive {
            let oldest = self.held.pop_front();
            self.check(oldest.as_deref().unwrap_or_default())?;
        }
        let reply = self.receive(pick(&self.replies, n))?;
        self.requests += 1;
        if self.work.handed > 0 && n.is_multiple_of(self.work.handed) && !self.others.is_empty() {
            let to = (n / self.work.handed % self.others.len() as u64) as usize;
            match self.others[to].try_send(reply) {
                Ok(()) => self.handed += 1,
                Err(TrySendError::Full(reply) | TrySendError::Disconnected(reply)) => self.send(&reply)?,
            }
        } else {
            self.send(&reply)?;
        }
        for _ in 0..INBOX {
            let Ok(reply) = self.inbox.try_recv() else { break };
            self.send(&reply)?;
        }
        Ok(())
    }

    fn send(&mut self, reply: &[u8]) -> Result<()> {
        self.look(reply);
        self.check(reply)
    }

    /// The stamp and the bytes at the end, which are the payload's of the thread that stamped them.
    fn check(&self, bytes: &[u8]) -> Result<()> {
        let whose = word(bytes, 0) & 0xFF;
        let last = bytes.len() - 1;
        let right =
            word(bytes, 8) == bytes.len() as u64 && (last < STAMP || bytes[last] == (last as u64 * 31 + whose) as u8);
        if right { Ok(()) } else { Err(format!("a buffer of {} bytes is not what was written", bytes.len()).into()) }
    }

    /// Every byte of what is held and what is in the inbox, which are then given back; gives a number that depends on all
    /// that was looked at, so that none of it is for nothing.
    ///
    /// # Errors
    /// A byte is not what was written.
    pub fn finish(&mut self) -> Result<u64> {
        let held: Vec<_> = self.held.drain(..).chain(self.inbox.try_iter()).collect();
        for bytes in held {
            let whose = word(&bytes, 0) & 0xFF;
            let rest = bytes.iter().enumerate().skip(STAMP);
            if let Some((at, _)) = rest.into_iter().find(|&(at, &byte)| byte != (at as u64 * 31 + whose) as u8) {
                return Err(format!("byte {at} of {} is not what was written", bytes.len()).into());
            }
            self.check(&bytes)?;
        }
        Ok(self.seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::sync_channel;

    const WORK: Work = Work { smallest: 64, largest: 4096, alive: 4, handed: 2, wait: Duration::ZERO };

    /// Two threads' worth of servers, served in turn.
    fn pair<M: Memory>(memory: M) -> [Server<M>; 2] {
        let ((first, to_first), (second, to_second)) = (sync_channel(8), sync_channel(8));
        [
            Server::new(memory.clone(), WORK, 0, to_first, vec![second]),
            Server::new(memory, WORK, 1, to_second, vec![first]),
        ]
    }

    fn serve<M: Memory>(memory: M, requests: usize) -> Result<[Server<M>; 2]> {
        let mut pair = pair(memory);
        for _ in 0..requests {
            for server in &mut pair {
                server.serve()?;
            }
        }
        for server in &mut pair {
            server.finish()?;
        }
        Ok(pair)
    }

    #[test]
    fn what_is_served_does_not_depend_on_the_memory() {
        let pool = BufferPool::new();
        let counts = [
            serve(pool.clone(), 500).unwrap().map(|server| server.seen),
            serve(WithCapacity, 500).unwrap().map(|server| server.seen),
            serve(Zeroed, 500).unwrap().map(|server| server.seen),
        ];
        assert_eq!((counts[0], counts[1]), (counts[1], counts[2]));
        let stats = pool.stats();
        assert_eq!((stats.in_use_bytes, stats.gets), (0, 3000));
        assert!(stats.allocations < 600, "{stats}");
    }

    #[test]
    fn half_of_the_replies_are_handed_over() {
        let [first, second] = serve(WithCapacity, 100).unwrap();
        assert_eq!((first.requests, second.requests), (100, 100));
        assert_eq!((first.handed, second.handed), (50, 50));
    }

    /// Gives every buffer the byte of another place.
    #[derive(Clone)]
    struct Wrong(fn(usize) -> usize);

    impl Memory for Wrong {
        type Bytes = Vec<u8>;

        fn filled(&self, bytes: &[u8]) -> Result<Vec<u8>> {
            let mut vec = bytes.to_vec();
            vec[(self.0)(bytes.len())] ^= 1;
            Ok(vec)
        }
    }

    #[test]
    fn a_wrong_byte_is_found() {
        // The last byte is looked at while requests are served, all others at the end.
        for wrong in [Wrong(|len| len - 1), Wrong(|len| len / 2)] {
            let cause = serve(wrong, 20).err().expect("a wrong byte").to_string();
            assert!(cause.contains("not what was written"), "{cause}");
        }
    }
}
