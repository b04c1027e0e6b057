//! Standard input and output as this process got them.
//!
//! Rust's start-up puts `/dev/null` in the place of each that is closed, and takes a write to one that is only readable
//! for done. A stream that went nowhere would then pass for one that arrived, so this checks first.

use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::failure::{Failure, Outcome};

const INPUT: i32 = 0;
const OUTPUT: i32 = 1;

/// A bit for each descriptor that this process could not use when it began.
static UNUSABLE: AtomicU8 = AtomicU8::new(0);

/// Called by the loader, before Rust's start-up.
#[used]
#[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
#[cfg_attr(not(target_os = "macos"), unsafe(link_section = ".init_array"))]
static CHECK: extern "C" fn() = check_descriptors;

extern "C" fn check_descriptors() {
    for (descriptor, wrong) in [(INPUT, libc::O_WRONLY), (OUTPUT, libc::O_RDONLY)] {
        // SAFETY: a query by number; no memory is involved.
        let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFL) };
        if flags == -1 || flags & libc::O_ACCMODE == wrong {
            // Relaxed: there is one thread yet.
            UNUSABLE.fetch_or(1 << descriptor, Ordering::Relaxed);
        }
    }
}

fn is_usable(descriptor: i32) -> bool {
    UNUSABLE.load(Ordering::Relaxed) & 1 << descriptor == 0
}

/// Whether the path leads to this descriptor, by one of the names that it has.
fn is_at(path: &Path, descriptor: i32) -> bool {
    let name = if descriptor == INPUT { "/dev/stdin" } else { "/dev/stdout" };
    let numbered = ["/dev/fd", "/proc/self/fd"].iter().any(|dir| path == Path::new(dir).join(descriptor.to_string()));
    path == Path::new(name) || numbered
}

/// [`input`], if that is what the path leads to.
pub fn input_at(path: &Path) -> Outcome {
    if is_at(path, INPUT) { input() } else { Ok(()) }
}

/// [`output`], if that is what the path leads to.
pub fn output_at(path: &Path) -> Outcome {
    if is_at(path, OUTPUT) { output() } else { Ok(()) }
}

/// Fails unless standard input can be read.
pub fn input() -> Outcome {
    if is_usable(INPUT) {
        return Ok(());
    }
    Err(Failure::error("standard input is closed or cannot be read, so there is nothing to send; name a FILE instead"))
}

/// Fails unless standard output can be written. To be asked before anything is done whose result goes there.
pub fn output() -> Outcome {
    if is_usable(OUTPUT) {
        return Ok(());
    }
    Err(Failure::error("standard output is closed or cannot be written; nothing was done"))
}
