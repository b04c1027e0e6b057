//! One file for each mechanism.

mod access;
mod bus;
mod bus_c;
mod bus_tokio;
mod eventfd;
mod futex;
mod hand_ring;
mod memcpy;
mod mqueue;
mod mutex_ring;
mod pipe;
mod pointer;
mod pool;
mod raw_flag;
mod region;
mod ring;
mod ring_disk;
mod seq_cst;
mod seqpacket;
mod shm_by_hand;
mod tcp;
mod uds;
mod uds_epoll;
mod uring_futex;

pub use memcpy::Bystander;

use crate::channel::Mechanism;

/// Everything that is measured without another program.
pub(crate) static ALL: &[&dyn Mechanism] = &[
    &raw_flag::RawFlag,
    &futex::Futex,
    &seq_cst::SeqCstRing,
    &pointer::Pointer,
    &memcpy::Memcpy,
    &hand_ring::HandRing,
    &uring_futex::UringFutex,
    &mutex_ring::MutexRing,
    &shm_by_hand::ShmByHand,
    &ring::Rings,
    &ring::CopyingRings,
    &ring_disk::DiskRings,
    &bus::BusPair,
    &bus_c::BusC,
    &bus_tokio::BusTokio,
    &region::Notification,
    &pipe::Pipes,
    &uds::Sockets,
    &uds_epoll::Epoll,
    &seqpacket::Packets,
    &tcp::Tcp,
    &mqueue::Queues,
    &eventfd::EventFds,
    &access::Access::Private,
    &access::Access::PrivateHuge,
    &access::Access::Region,
    &access::Access::RegionHuge,
    &pool::POOL,
    &pool::HAND_STACK,
    &pool::MALLOC,
    &pool::BYTES,
    &pool::VEC_ZEROED,
];

/// Those of them that are pools of buffers, or what one has instead.
pub(crate) const POOLS: [&str; 5] = ["pool", "hand-stack", "malloc", "bytes", "vec-zeroed"];

/// The mechanism of this name.
pub(crate) fn find(name: &str) -> Option<&'static dyn Mechanism> {
    ALL.iter().copied().find(|mechanism| mechanism.about().name == name)
}
