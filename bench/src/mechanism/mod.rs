//! One file for each mechanism.

mod access;
mod bus;
mod bus_c;
mod bus_tokio;
mod epoll_pipes;
mod eventfd;
mod futex;
mod futex_fan;
mod hand_ring;
mod inbox;
mod inbox_fan;
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
mod rpc;
mod select;
mod seq_cst;
mod seqlock;
mod seqpacket;
mod shm_by_hand;
mod tcp;
mod topic;
mod topic_fan;
mod uds;
mod uds_epoll;
mod uring_futex;

pub use memcpy::Bystander;

use crate::channel::Mechanism;
use crate::fan::OneToMany;

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
    &rpc::COPIES,
    &rpc::IN_PLACE,
    &region::Notification,
    &topic::Topics,
    &topic_fan::READERS,
    &topic_fan::LATEST,
    &topic_fan::LATEST_INTO,
    &topic_fan::LOSSY,
    &topic_fan::UNREAD[0],
    &topic_fan::UNREAD[1],
    &topic_fan::UNREAD[2],
    &topic_fan::UNREAD[3],
    &topic_fan::UNREAD[4],
    &topic_fan::UNREAD[5],
    &topic_fan::UNREAD[6],
    &OneToMany(seqlock::Seqlock),
    &OneToMany(futex_fan::FutexFan),
    &select::Selected::<1, false>,
    &select::Selected::<16, false>,
    &select::Selected::<128, false>,
    &select::Selected::<128, true>,
    &inbox::Inboxes,
    &inbox::Polled,
    &inbox_fan::INBOX,
    &inbox_fan::RINGS,
    &epoll_pipes::Waited::<16>,
    &epoll_pipes::Waited::<128>,
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
