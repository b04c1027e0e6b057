//! The two processes' memory: a control page and a ring's data mapped twice back to back, for each direction.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const PAGE: usize = 4096;

/// Mapped before the fork, so both processes have it at the same address.
pub struct Shared {
    control: *mut u8,
    data: [*mut u8; 2],
    pub capacity: usize,
}

impl Shared {
    pub fn new(capacity: usize) -> Self {
        let length = 2 * PAGE + 2 * capacity;
        // SAFETY: a fresh memfd of `length` bytes; every mapping below lies inside it, and MAP_FIXED only replaces
        // what this function has just reserved.
        unsafe {
            let fd = libc::memfd_create(c"ramway-framings".as_ptr(), libc::MFD_CLOEXEC);
            assert!(fd >= 0 && libc::ftruncate(fd, length as i64) == 0, "memfd of {length} bytes");
            let map = |address: *mut u8, offset: usize, length: usize, fixed| {
                let protection = libc::PROT_READ | libc::PROT_WRITE;
                let flags = libc::MAP_SHARED | libc::MAP_POPULATE | fixed;
                let at = libc::mmap(address.cast(), length, protection, flags, fd, offset as i64);
                assert!(at != libc::MAP_FAILED, "mmap");
                at.cast::<u8>()
            };
            let control = map(std::ptr::null_mut(), 0, 2 * PAGE, 0);
            let data = [0, 1].map(|direction| {
                let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
                let space = libc::mmap(std::ptr::null_mut(), 2 * capacity, libc::PROT_NONE, flags, -1, 0);
                assert!(space != libc::MAP_FAILED, "mmap");
                let offset = 2 * PAGE + direction * capacity;
                let first = map(space.cast(), offset, capacity, libc::MAP_FIXED);
                map(first.add(capacity), offset, capacity, libc::MAP_FIXED);
                first
            });
            libc::close(fd);
            Self { control, data, capacity }
        }
    }

    /// An atomic word of the control pages.
    #[inline(always)]
    pub fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: callers pass constants below two pages, multiples of 8; the words are only ever accessed atomically.
        unsafe { &*self.control.add(offset).cast::<AtomicU64>() }
    }

    /// Where the ring's bytes of a position begin; `capacity` bytes from there on are contiguous.
    #[inline(always)]
    pub fn at(&self, direction: usize, position: u64) -> *mut u8 {
        // SAFETY: the offset is below the capacity, and the mapping has twice that.
        unsafe { self.data[direction].add(position as usize & (self.capacity - 1)) }
    }

    pub fn flag(&self, side: usize) -> &AtomicU64 {
        self.word(PAGE + 1024 + side * 128)
    }

    pub fn row(&self) -> &AtomicU64 {
        self.word(PAGE)
    }

    pub fn start(&self) -> &AtomicU64 {
        self.word(PAGE + 8)
    }

    pub fn burst(&self) -> &AtomicU64 {
        self.word(PAGE + 128)
    }

    pub fn ready(&self) -> &AtomicU64 {
        self.word(PAGE + 256)
    }

    pub fn done(&self) -> &AtomicU64 {
        self.word(PAGE + 384)
    }

    /// Where the burst's producer stopped.
    pub fn end(&self) -> &AtomicU64 {
        self.word(PAGE + 512)
    }

    /// Both directions empty at `position`, every word of the header zero, no flag up.
    pub fn prepare(&self, position: u64) {
        for offset in (0..PAGE).step_by(8) {
            self.word(offset).store(0, Relaxed);
        }
        for direction in [0, 1] {
            for line in [64, 128] {
                self.word(direction * 2048).store(position, Relaxed);
                self.word(direction * 2048 + line).store(position, Relaxed);
            }
            // SAFETY: inside the mapping; nobody else touches it between bursts. The terminator begins as "no frame".
            unsafe { self.at(direction, position).cast::<u64>().write(0) };
            self.flag(direction).store(0, Relaxed);
        }
        self.end().store(position, Relaxed);
    }
}

/// Waits between bursts, where the other process may have lost its CPU to somebody else.
pub fn spin_until(condition: impl Fn() -> bool) {
    let mut tries = 0u32;
    while !condition() {
        tries += 1;
        if tries.is_multiple_of(4096) {
            std::thread::yield_now();
        }
        std::hint::spin_loop();
    }
}

/// The first two CPUs that this process may use.
pub fn two_cpus() -> (usize, usize) {
    // SAFETY: a zeroed cpu_set_t is an empty one, and the kernel fills in no more than its size.
    let allowed: Vec<usize> = unsafe {
        let mut set = std::mem::zeroed::<libc::cpu_set_t>();
        libc::sched_getaffinity(0, size_of_val(&set), &mut set);
        (0..libc::CPU_SETSIZE as usize).filter(|&cpu| libc::CPU_ISSET(cpu, &set)).collect()
    };
    assert!(allowed.len() >= 2, "two CPUs are needed");
    (allowed[0], allowed[1])
}

pub fn pin(cpu: usize) {
    // SAFETY: as above; the set holds one CPU that was allowed a moment ago.
    let result = unsafe {
        let mut set = std::mem::zeroed::<libc::cpu_set_t>();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set)
    };
    assert!(result == 0, "cannot pin to CPU {cpu}");
}

pub fn die_with_parent() {
    // SAFETY: asks for a signal, nothing else.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
}

/// Else the parent would spin forever; the child has said why on stderr.
pub fn exit_if_a_child_dies(on: bool) {
    extern "C" fn exit(_: libc::c_int) {
        // SAFETY: _exit is async-signal-safe.
        unsafe { libc::_exit(1) }
    }
    let handler = if on { exit as extern "C" fn(libc::c_int) as libc::sighandler_t } else { libc::SIG_DFL };
    // SAFETY: the handler calls nothing but _exit.
    unsafe { libc::signal(libc::SIGCHLD, handler) };
}

pub fn cpu_model() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let model = field("model name").unwrap_or_else(|| "unknown CPU".into());
    format!(
        "{model}, family {} model {}",
        field("cpu family").unwrap_or_default(),
        field("model\t").unwrap_or_default()
    )
}
