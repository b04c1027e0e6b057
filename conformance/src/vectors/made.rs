//! What a language makes itself, against the page: the header of a new ring, of a listener's segment and of a bus's
//! memory, and the locks that go with it.

use std::os::fd::BorrowedFd;

use super::files::{Result, tried};
use super::image::{
    BLOCKS, BOOT_ID, BUS, CONSUMER, CREATED_NS, EPOCH, FENCE_FREE, Image, LAST_TAGS, LISTENER, MEMBARRIER_CAPABLE,
    PAGE, PRODUCER, RING, ROLE_FLAGS, Ring, hex,
};

/// Something to make.
#[derive(Clone, Copy, Debug)]
pub enum Made {
    /// A named ring of this capacity (what is asked for, and what it becomes) and alignment.
    Ring(u64, u64, u64),
    /// A ring of 4096 bytes at an alignment, with so many messages of 40 bytes in it, each published by itself.
    Sent(u64, u64),
    /// A listener, and the memory of a bus with such rings.
    Bus(u64, u64, u64),
}

/// All of them.
pub const ALL: [Made; 7] = [
    Made::Ring(1, 4096, 16),
    Made::Ring(20_000, 32_768, 64),
    Made::Ring(4096, 4096, 4096),
    Made::Sent(16, 3),
    Made::Sent(256, 4),
    Made::Bus(4096, 4096, 16),
    Made::Bus(5000, 8192, 256),
];

impl Made {
    /// As in reports.
    pub fn name(self) -> String {
        match self {
            Self::Ring(asked, _, align) => format!("made-ring-of-{asked}-align-{align}"),
            Self::Sent(align, count) => format!("made-ring-with-{count}-align-{align}"),
            Self::Bus(asked, _, align) => format!("made-bus-of-{asked}-align-{align}"),
        }
    }

    /// What was asked for: capacity and alignment.
    pub const fn asked(self) -> (u64, u64) {
        match self {
            Self::Ring(asked, _, align) | Self::Bus(asked, _, align) => (asked, align),
            Self::Sent(align, _) => (4096, align),
        }
    }

    /// How many messages are sent.
    pub const fn count(self) -> u64 {
        if let Self::Sent(_, count) = self { count } else { 0 }
    }

    /// The whole of it once its maker has attached as producer of a ring, or to both of its ends of a bus.
    pub fn image(self) -> Image {
        let first = PAGE.max(page_size());
        match self {
            Self::Ring(_, capacity, align) => {
                let mut image = Image::header(RING, first + capacity);
                let ring = Ring::new(&mut image, BLOCKS[0], first, capacity, align);
                attach_producer(&mut image, &ring);
                image
            }
            Self::Sent(align, count) => {
                let mut image = Image::header(RING, first + 4096);
                let mut ring = Ring::new(&mut image, BLOCKS[0], first, 4096, align);
                attach_producer(&mut image, &ring);
                (0..count).for_each(|seq| ring.send_number(&mut image, seq, 40));
                image
            }
            Self::Bus(_, capacity, align) => {
                let mut image = Image::header(BUS, first + 2 * capacity);
                let to = Ring::new(&mut image, BLOCKS[0], first, capacity, align);
                let back = Ring::new(&mut image, BLOCKS[1], first + capacity, capacity, align);
                attach_producer(&mut image, &to);
                back.role(&mut image, CONSUMER, 0, 1);
                image
            }
        }
    }
}

/// The first producer's attach: its epoch, and last-tag records that are not the tail's forgotten.
fn attach_producer(image: &mut Image, ring: &Ring) {
    ring.role(image, PRODUCER, 0, 1);
    if ring.tail != 0 {
        for record in LAST_TAGS {
            image.u64(ring.block + record, 1);
        }
    }
}

/// A listener's segment.
pub fn listener() -> Image {
    Image::header(LISTENER, PAGE.max(page_size()))
}

fn page_size() -> u64 {
    // SAFETY: a question without arguments that could be wrong.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as u64 }
}

/// Compares a file with what it must be; the time of its making may be any of the last day. `named`: it carries this
/// boot's id.
pub fn compare(fd: BorrowedFd<'_>, expected: &Image, named: bool) -> Result<()> {
    let len = tried("fstat", rustix::fs::fstat(fd))?.st_size as u64;
    if len != expected.size {
        return Err(format!("it makes {len} bytes, expected {}", expected.size));
    }
    let mut page = vec![0; (PAGE + 4096).min(len) as usize];
    tried("pread", rustix::io::pread(fd, &mut page[..], 0))?;
    let mut wanted = expected.read(0, page.len() as u64);
    let created = CREATED_NS as usize..CREATED_NS as usize + 8;
    let stamp = u64::from_le_bytes(page[created.clone()].try_into().expect("8 bytes"));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
    if now.abs_diff(stamp) > 86_400_000_000_000 {
        return Err(format!("created_ns is {stamp}, and it is {now} now"));
    }
    wanted[created.clone()].copy_from_slice(&page[created]);
    if named {
        let boot = BOOT_ID as usize;
        wanted[boot..boot + 16].copy_from_slice(&boot_id()?);
    }
    for block in BLOCKS {
        for role in [PRODUCER, CONSUMER] {
            // An attached side says here how it fences.
            let flags = (block + role + ROLE_FLAGS) as usize;
            if expected.read_u32(block + role + EPOCH) != 0 {
                page[flags] &= !(MEMBARRIER_CAPABLE | FENCE_FREE) as u8;
            }
        }
    }
    // The first of the two last-tag records that is written may be either.
    for block in BLOCKS {
        let [first, second] = LAST_TAGS.map(|record| (block + record) as usize);
        let swapped = [&wanted[second..second + 16], &wanted[first..first + 16]].concat();
        if page[first..first + 32] == swapped {
            wanted[first..first + 32].copy_from_slice(&swapped);
        }
    }
    match (0..page.len()).find(|&at| page[at] != wanted[at]) {
        None => Ok(()),
        Some(at) => {
            let line = at & !7;
            let (found, expected) = (hex(&page[line..line + 8]), hex(&wanted[line..line + 8]));
            Err(format!("it has {found} at {line:#05x}, expected {expected}"))
        }
    }
}

/// The boot id as 16 raw bytes.
fn boot_id() -> Result<[u8; 16]> {
    let text = tried("the boot id", std::fs::read_to_string("/proc/sys/kernel/random/boot_id"))?;
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    super::files::bytes(&digits)?.try_into().map_err(|_| format!("'{}' is no boot id", text.trim()))
}
