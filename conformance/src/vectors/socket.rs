//! The side of a bus's handshake that is not under test, over a real socket, from the table in `docs/ABI.md`.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};

use super::files::{Result, tried};
use super::handshake::{ACK, HELLO, MAGIC, REFUSE, WELCOME};
use super::model::Answer;

/// A connection, and of an RPC's bus how many calls its WELCOME says may be in flight.
pub struct Socket(UnixStream, Option<u32>);

/// A whole message, and the descriptors that came with it.
struct Received {
    bytes: [u8; 64],
    descriptors: Vec<OwnedFd>,
}

impl Socket {
    /// The next connection.
    pub fn accept(listener: &UnixListener, deadline: Instant) -> Result<Self> {
        if !readable(listener.as_fd(), deadline)? {
            return Err("it does not connect".into());
        }
        Ok(Self(tried("accept", listener.accept())?.0, None))
    }

    /// Connects once the socket is there.
    pub fn connect(path: &Path, deadline: Instant, mut ended: impl FnMut() -> bool) -> Result<Self> {
        loop {
            match UnixStream::connect(path) {
                Ok(stream) => return Ok(Self(stream, None)),
                Err(cause) if Instant::now() >= deadline || ended() => {
                    return Err(format!("nobody listens at {}: {cause}", path.display()));
                }
                Err(_) => std::thread::sleep(Duration::from_millis(2)),
            }
        }
    }

    /// The same connection, as one for the bus of an RPC.
    pub fn rpc(self, max_in_flight: u32) -> Self {
        Self(self.0, Some(max_in_flight))
    }

    /// Sends bytes in one piece. That the other side has closed is for the next step to find.
    pub fn send(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
            return Err(format!("{} descriptors are too many", descriptors.len()));
        }
        match rustix::net::sendmsg(&self.0, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL) {
            Err(Errno::PIPE | Errno::CONNRESET) => Ok(()),
            sent => tried("sendmsg", sent).map(drop),
        }
    }

    /// A message of this type and status with everything else as it must be. Of a WELCOME, the memory.
    pub fn receive(&self, answer: Answer, deadline: Instant) -> Result<Option<OwnedFd>> {
        let mut got = self.message(deadline)?.ok_or_else(|| format!("it hangs up before {}", name(answer.kind)))?;
        let u32_at = |at: usize| u32::from_le_bytes(got.bytes[at..at + 4].try_into().expect("4 bytes"));
        let (kind, status) = (u32_at(0x10), u32_at(0x14));
        if got.bytes[..8] != *MAGIC || u32_at(0x08) != 0x0A0B_0C0D || got.bytes[0x0C..0x0E] != [1, 0] {
            return Err(format!("it sends what is no message of version 1: {:02x?}", &got.bytes[..16]));
        }
        if (kind, status) != (answer.kind, answer.status) {
            let (kind, expected) = (name(kind), name(answer.kind));
            return Err(format!("it sends {kind} with status {status}, expected {expected} with {}", answer.status));
        }
        let size = u64::from(u32_at(0x20)) | u64::from(u32_at(0x24)) << 32;
        let features = u32::from(self.1.is_some() && matches!(kind, HELLO | WELCOME));
        let limit = self.1.filter(|_| kind == WELCOME).unwrap_or(0);
        let right = (u32_at(0x18), u32_at(0x28), size != 0) == (features, limit, kind == WELCOME);
        if !right || got.bytes[0x2C..] != [0; 20] {
            return Err(format!("the rest of its {} is wrong: {:02x?}", name(kind), &got.bytes[0x18..]));
        }
        let count = got.descriptors.len();
        if count != usize::from(kind == WELCOME) {
            return Err(format!("{count} descriptors come with its {}", name(kind)));
        }
        let Some(memory) = got.descriptors.pop() else { return Ok(None) };
        let real = tried("fstat", rustix::fs::fstat(&memory))?.st_size;
        let seals = tried("F_GET_SEALS", rustix::fs::fcntl_get_seals(&memory))?;
        let needed = rustix::fs::SealFlags::SHRINK | rustix::fs::SealFlags::GROW | rustix::fs::SealFlags::SEAL;
        if real as u64 != size || !seals.contains(needed) {
            return Err(format!("its memory has {real} bytes and the seals {seals:?}, announced are {size} bytes"));
        }
        Ok(Some(memory))
    }

    /// Waits until the other side has closed.
    pub fn end(&self, deadline: Instant) -> Result<()> {
        while self.message(deadline)?.is_some() {}
        Ok(())
    }

    /// The next 64 bytes; `None` at the end, also in the middle of them.
    fn message(&self, deadline: Instant) -> Result<Option<Received>> {
        let mut got = Received { bytes: [0; 64], descriptors: Vec::new() };
        let mut filled = 0;
        while filled < 64 {
            if !readable(self.0.as_fd(), deadline)? {
                return Err(format!("it stays silent after {filled} of 64 bytes and does not close"));
            }
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let mut parts = [IoSliceMut::new(&mut got.bytes[filled..])];
            match rustix::net::recvmsg(&self.0, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC) {
                Ok(received) if received.bytes > 0 => filled += received.bytes,
                Ok(_) | Err(Errno::CONNRESET) => return Ok(None),
                Err(cause) => return Err(format!("recvmsg: {cause}")),
            }
            for item in control.drain() {
                if let RecvAncillaryMessage::ScmRights(rights) = item {
                    got.descriptors.extend(rights);
                }
            }
        }
        Ok(Some(got))
    }
}

fn name(kind: u32) -> String {
    match kind {
        HELLO => "HELLO".into(),
        WELCOME => "WELCOME".into(),
        REFUSE => "REFUSE".into(),
        ACK => "ACK".into(),
        other => format!("a message of type {other}"),
    }
}

/// Waits until there is something to read, or the end; `false` once the deadline has passed.
fn readable(fd: BorrowedFd<'_>, deadline: Instant) -> Result<bool> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = tried("the deadline", Timespec::try_from(left))?;
        let mut one = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
        match rustix::event::poll(&mut one, Some(&left)) {
            Ok(0) => return Ok(false),
            Ok(_) => return Ok(true),
            Err(Errno::INTR) => {}
            Err(cause) => return Err(format!("poll: {cause}")),
        }
    }
}
