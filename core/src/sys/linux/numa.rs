//! Which NUMA node the pages of shared memory are on.

use std::ffi::c_void;
use std::os::fd::BorrowedFd;

use rustix::mm::{MapFlags, ProtFlags};

use crate::error::{Error, ErrorKind, Result};
use crate::sys::{last_errno, os};

/// One bit a node, for as many nodes as any kernel has.
struct NodeMask([libc::c_ulong; 1024 / libc::c_ulong::BITS as usize]);

impl NodeMask {
    const BITS: u32 = 1024;

    fn only(node: u32) -> Result<Self> {
        let mut mask = Self([0; 1024 / libc::c_ulong::BITS as usize]);
        let there = std::path::Path::new(&format!("/sys/devices/system/node/node{node}")).exists();
        if node >= Self::BITS || !there {
            let online = std::fs::read_to_string("/sys/devices/system/node/online").unwrap_or_default();
            let text = format!("NUMA node {node} does not exist; this machine has {}", nodes(online.trim()));
            return Err(Error::new(ErrorKind::InvalidArgument, text));
        }
        mask.0[(node / libc::c_ulong::BITS) as usize] = 1 << (node % libc::c_ulong::BITS);
        Ok(mask)
    }
}

/// The nodes of a machine in words: `node 0`, `nodes 0-3`.
fn nodes(online: &str) -> String {
    match online {
        "" => "no NUMA nodes that it shows".into(),
        one if one.bytes().all(|b| b.is_ascii_digit()) => format!("node {one}"),
        several => format!("nodes {several}"),
    }
}

#[cfg(test)]
#[test]
fn nodes_are_named() {
    assert_eq!(["0", "0-3", "0,2", ""].map(nodes), ["node 0", "nodes 0-3", "nodes 0,2", "no NUMA nodes that it shows"]);
}

/// Tells the file that its pages belong on `node`: shared memory keeps the policy with the file, so that it holds for
/// the allocation that follows and for every process.
pub(super) fn prefer_node(fd: BorrowedFd<'_>, offset: u64, len: u64, node: u32) -> Result<()> {
    let mask = NodeMask::only(node)?;
    let what = || format!("numa_node: binding {len} bytes to node {node}");
    let len_here = usize::try_from(len).map_err(|_| Error::os(libc::ENOMEM, what()))?;
    // SAFETY: a new mapping at an address of the kernel's choice; nothing reads or writes through it.
    let map =
        unsafe { rustix::mm::mmap(std::ptr::null_mut(), len_here, ProtFlags::empty(), MapFlags::SHARED, fd, offset) }
            .map_err(os(what()))?;
    // SAFETY: the range is the mapping just made, the mask outlives the call, and `maxnode` is one more than its
    // bits (the kernel takes one off).
    let rc = unsafe {
        libc::syscall(
            libc::SYS_mbind,
            map,
            len_here,
            libc::MPOL_BIND,
            mask.0.as_ptr(),
            libc::c_ulong::from(NodeMask::BITS) + 1,
            0,
        )
    };
    let errno = last_errno();
    // SAFETY: the mapping made above, which nothing else knows.
    let _ = unsafe { rustix::mm::munmap(map, len_here) };
    if rc == 0 { Ok(()) } else { Err(Error::os(errno, what())) }
}

/// `linux/mempolicy.h`: return a node, and that of the page at the address.
const MPOL_F_NODE: libc::c_ulong = 1;
const MPOL_F_ADDR: libc::c_ulong = 2;

/// Looks where the first, the middle and the last page are.
///
/// # Safety
/// As [`apply`](crate::sys::placement::apply).
pub(crate) unsafe fn verify_node(ptr: *mut u8, len: usize, node: u32) -> Result<()> {
    NodeMask::only(node)?;
    for at in [0, len / 2, len - 1] {
        let mut found: libc::c_int = -1;
        // SAFETY: the kernel writes one int, and reads the page at an address that is mapped.
        let rc = unsafe {
            libc::syscall(
                libc::SYS_get_mempolicy,
                &raw mut found,
                std::ptr::null_mut::<c_void>(),
                0,
                ptr.add(at),
                MPOL_F_NODE | MPOL_F_ADDR,
            )
        };
        if rc != 0 {
            return Err(Error::os(last_errno(), "numa_node: asking where a page is (get_mempolicy)"));
        }
        if found != node as libc::c_int {
            let text = format!(
                "numa_node: the data is on node {found}, not on node {node}; pages are placed when the segment is \
                 created, in memory: let the creator ask for the node"
            );
            return Err(Error::new(ErrorKind::Unsupported, text));
        }
    }
    Ok(())
}
