//! One file for each mechanism.

mod bus;
mod futex;
mod memcpy;
mod pipe;
mod pointer;
mod raw_flag;
mod region;
mod ring;
mod seq_cst;
mod uds;

pub use memcpy::Bystander;

use crate::channel::Mechanism;

/// Everything that is measured without another program.
pub(crate) static ALL: &[&dyn Mechanism] = &[
    &raw_flag::RawFlag,
    &futex::Futex,
    &seq_cst::SeqCstRing,
    &pointer::Pointer,
    &memcpy::Memcpy,
    &ring::Rings,
    &ring::CopyingRings,
    &bus::BusPair,
    &region::Notification,
    &pipe::Pipes,
    &uds::Sockets,
];

/// The mechanism of this name.
pub(crate) fn find(name: &str) -> Option<&'static dyn Mechanism> {
    ALL.iter().copied().find(|mechanism| mechanism.about().name == name)
}
