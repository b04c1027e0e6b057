//! Mapping the same memory again, by Mach calls that the `libc` crate leaves to others.

use std::os::fd::BorrowedFd;

use crate::error::{Error, ErrorKind, Result};
use crate::sys::mem::page_size;

type MachPort = libc::c_uint;

const VM_FLAGS_FIXED: libc::c_int = 0;
const VM_FLAGS_OVERWRITE: libc::c_int = 0x4000;
const VM_INHERIT_SHARE: libc::c_uint = 0;
const KERN_SUCCESS: libc::c_int = 0;

unsafe extern "C" {
    static mach_task_self_: MachPort;

    fn mach_vm_remap(
        target_task: MachPort,
        target_address: *mut u64,
        size: u64,
        mask: u64,
        flags: libc::c_int,
        source_task: MachPort,
        source_address: u64,
        copy: libc::c_int,
        current_protection: *mut libc::c_int,
        maximal_protection: *mut libc::c_int,
        inheritance: libc::c_uint,
    ) -> libc::c_int;
}

/// Maps the `len` bytes at `source` at `target` as well. That the memory is shared is not checked: the kernel maps
/// private memory twice too, but another process would never see it.
///
/// # Safety
/// `source` is the start of `len` bytes that belong to one mapping, and nobody uses the `len` bytes at `target`.
pub(crate) unsafe fn alias(source: *mut u8, len: usize, target: *mut u8) -> Result<()> {
    let mut address = target as u64;
    let (mut current, mut maximal) = (0, 0);
    // SAFETY: the port names this process and never changes. The target is nobody's, by the contract, and `copy` is
    // false, so that the source stays as it is; the three results live on the stack.
    let result = unsafe {
        mach_vm_remap(
            mach_task_self_,
            &raw mut address,
            len as u64,
            0,
            VM_FLAGS_FIXED | VM_FLAGS_OVERWRITE,
            mach_task_self_,
            source as u64,
            0,
            &raw mut current,
            &raw mut maximal,
            VM_INHERIT_SHARE,
        )
    };
    if result == KERN_SUCCESS {
        return Ok(());
    }
    let text = format!(
        "this memory cannot be mapped a second time (mach_vm_remap of {len} bytes: {result}): it must be a page-aligned \
         MAP_SHARED mapping"
    );
    Err(Error::new(ErrorKind::Unsupported, text))
}

/// The alignment that lets the kernel use large pages for a mapping: it has none for files and shared memory.
pub(crate) fn large_page(_fd: BorrowedFd<'_>, _len: usize) -> usize {
    page_size()
}
