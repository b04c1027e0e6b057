//! macOS: what differs there from `sys/linux`, module by module.
//!
//! `make lint` compiles it for aarch64, and the project's test workflow runs `make test-macos`; no developer has run it. It is written from
//! the kernel's published source and the manual pages, so what only a run shows is not known: what a wake-up costs, how
//! soon the kernel releases a killed process's locks, whether every limit is met with the error named here.
//!
//! What is different for users:
//!
//! - **Waiting** is `__ulock_wait`, which the system's own libraries stand on but which Apple does not document: not for
//!   the App Store. No membarrier, so every waker fences (2.5 times the cost of a message's publishing on x86-64).
//! - **A bus's memory** is a POSIX shared memory object that has lost its name: its size can be set only once, which is
//!   what the seals of a memfd are for. Its pages are not set aside: where memory and swap run out, the system kills.
//! - **Named segments** are files in `/tmp/ramway-<euid>`: there is no memory file system, so APFS and HFS+ count as one
//!   and need no `allow_disk`. They are written back to the disk now and then, and given up at the next boot. The system
//!   may clean `/tmp` of what nobody has opened for days: then the name has vanished, as after `rm`.
//! - **A readiness descriptor** is always a pipe with a helper thread; there is no io_uring.
//! - `huge_pages` and `numa_node` are `Unsupported`; `lock_memory` (`mlock`) and `prefault` are there.
//! - A socket's path has to fit into 103 bytes. A full backlog looks like a dead listener, so a connector that is told
//!   "is alive but not accepting" may just be early.
//! - There is no atomic close-on-exec: a descriptor that is made while another thread calls `posix_spawn` may reach the
//!   new program. `fork` is held off meanwhile for those that matter.

pub(super) mod clock;
pub(crate) mod closes;
pub(crate) mod event;
pub(super) mod files;
pub(crate) mod futex;
pub(crate) mod membarrier;
pub(crate) mod memfd;
pub(super) mod pages;
pub(super) mod peer;
pub(super) mod placement;
pub(super) mod set;
