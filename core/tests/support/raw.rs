//! The handshake by hand, from the table in `docs/ABI.md` and not from the library's code.

use std::io::{IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};

pub const HELLO: u32 = 1;
pub const WELCOME: u32 = 2;
pub const REFUSE: u32 = 3;
pub const ACK: u32 = 4;

/// A message with every field right.
pub fn message(kind: u32, status: u32, size: u64) -> [u8; 64] {
    let mut bytes = [0; 64];
    bytes[..8].copy_from_slice(b"RAMBUS\r\n");
    bytes[0x08..0x0C].copy_from_slice(&0x0A0B_0C0Du32.to_le_bytes());
    bytes[0x0C] = 1;
    bytes[0x10..0x14].copy_from_slice(&kind.to_le_bytes());
    bytes[0x14..0x18].copy_from_slice(&status.to_le_bytes());
    bytes[0x20..0x28].copy_from_slice(&size.to_le_bytes());
    bytes
}

pub fn connect(path: &Path) -> UnixStream {
    let socket = UnixStream::connect(path).unwrap();
    socket.set_read_timeout(Some(super::LONG)).unwrap();
    socket
}

pub fn send(mut socket: &UnixStream, bytes: &[u8]) {
    socket.write_all(bytes).unwrap();
}

pub fn send_with(socket: &UnixStream, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(control.push(SendAncillaryMessage::ScmRights(descriptors)));
    let sent = rustix::net::sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL).unwrap();
    assert_eq!(sent, bytes.len());
}

/// The next message and the descriptor with it; `None` at the end.
pub fn receive(socket: &UnixStream) -> Option<([u8; 64], Option<OwnedFd>)> {
    let mut bytes = [0; 64];
    let mut descriptor = None;
    let mut filled = 0;
    while filled < 64 {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut bytes[filled..])];
        match rustix::net::recvmsg(socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Ok(received) if received.bytes > 0 => filled += received.bytes,
            Ok(_) | Err(rustix::io::Errno::CONNRESET) => return None,
            Err(e) => panic!("the other side is silent: {e}"),
        }
        for item in control.drain() {
            if let RecvAncillaryMessage::ScmRights(mut rights) = item {
                descriptor = rights.next();
            }
        }
    }
    Some((bytes, descriptor))
}

/// The error number of the REFUSE that comes next.
pub fn refusal(socket: &UnixStream) -> u32 {
    let (bytes, _) = receive(socket).expect("an answer before the end");
    assert_eq!(bytes[..20], message(REFUSE, 0, 0)[..20]);
    u32::from_le_bytes(bytes[0x14..0x18].try_into().unwrap())
}

/// Waits until the other side hangs up.
pub fn wait_for_the_end(mut socket: &UnixStream) {
    let mut byte = [0; 64];
    loop {
        match socket.read(&mut byte) {
            Ok(0) => return,
            Ok(_) => {}
            Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => return,
            Err(e) => panic!("the other side did not hang up: {e}"),
        }
    }
}

/// A correct connector up to WELCOME: the memory, which nobody has acknowledged yet.
pub fn greet(socket: &UnixStream) -> (OwnedFd, u64) {
    try_greet(socket).expect("WELCOME")
}

/// [`greet`], or the error number with which it is refused.
pub fn try_greet(socket: &UnixStream) -> Result<(OwnedFd, u64), u32> {
    send(socket, &message(HELLO, 0, 0));
    let (bytes, memory) = receive(socket).expect("an answer to HELLO");
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    match bytes[0x10] {
        code if code == REFUSE as u8 => Err(word(0x14)),
        code => {
            assert_eq!(code, WELCOME as u8);
            let size = u64::from_le_bytes(bytes[0x20..0x28].try_into().unwrap());
            Ok((memory.expect("a descriptor with WELCOME"), size))
        }
    }
}

/// A bus segment's header page with these rings: `(data_offset, capacity, align)`.
pub fn header(kind: u32, size: u64, rings: [(u64, u64, u32); 2]) -> Vec<u8> {
    let mut page = vec![0; 4096];
    page[..8].copy_from_slice(b"RAMWAY\r\n");
    page[0x08..0x0C].copy_from_slice(&0x0A0B_0C0Du32.to_le_bytes());
    page[0x0C] = 1;
    page[0x10..0x14].copy_from_slice(&kind.to_le_bytes());
    page[0x20..0x28].copy_from_slice(&size.to_le_bytes());
    for (block, (offset, capacity, align)) in [0x400, 0x800].into_iter().zip(rings) {
        page[block..block + 8].copy_from_slice(&offset.to_le_bytes());
        page[block + 8..block + 16].copy_from_slice(&capacity.to_le_bytes());
        page[block + 24..block + 28].copy_from_slice(&align.to_le_bytes());
        let first = u64::from(align).wrapping_sub(16).to_le_bytes();
        page[block + 0x80..block + 0x88].copy_from_slice(&first);
        page[block + 0x100..block + 0x108].copy_from_slice(&first);
    }
    page
}

pub const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// A memfd of this size that begins with `page`.
pub fn memory(page: &[u8], size: u64, seals: SealFlags) -> OwnedFd {
    let fd = rustix::fs::memfd_create("hostile", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    rustix::io::pwrite(&fd, page, 0).unwrap();
    rustix::fs::ftruncate(&fd, size).unwrap();
    if !seals.is_empty() {
        rustix::fs::fcntl_add_seals(&fd, seals).unwrap();
    }
    fd
}

/// All of a bus's memory, mapped for mischief.
pub struct Whole {
    ptr: *mut u8,
    len: usize,
}

// SAFETY: only atomic accesses are made through the pointer.
unsafe impl Send for Whole {}
// SAFETY: as above.
unsafe impl Sync for Whole {}

impl Whole {
    pub fn map(memory: BorrowedFd<'_>, len: u64) -> Self {
        use rustix::mm::{MapFlags, ProtFlags};
        let len = len as usize;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let ptr = unsafe { rustix::mm::mmap(std::ptr::null_mut(), len, protection, MapFlags::SHARED, memory, 0) };
        Self { ptr: ptr.unwrap().cast(), len }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn u64(&self, at: usize) -> &std::sync::atomic::AtomicU64 {
        assert!(at.is_multiple_of(8) && at + 8 <= self.len);
        // SAFETY: inside the mapping and aligned, and all accesses are atomic.
        unsafe { std::sync::atomic::AtomicU64::from_ptr(self.ptr.add(at).cast()) }
    }

    pub fn u32(&self, at: usize) -> &std::sync::atomic::AtomicU32 {
        assert!(at.is_multiple_of(4) && at + 4 <= self.len);
        // SAFETY: as above.
        unsafe { std::sync::atomic::AtomicU32::from_ptr(self.ptr.add(at).cast()) }
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        // SAFETY: our own mapping, and no reference into it outlives `self`.
        unsafe { rustix::mm::munmap(self.ptr.cast(), self.len) }.unwrap();
    }
}

/// The descriptor of anything that is not a memfd.
pub fn no_memfd() -> OwnedFd {
    std::fs::File::open("/dev/null").unwrap().into()
}
