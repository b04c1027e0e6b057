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

use crate::Result;
use crate::channel::Mechanism;

static ALL: [(&dyn Mechanism, bool); 11] = [
    (&raw_flag::RawFlag, false),
    (&ring::Rings { copy: false }, false),
    (&ring::Rings { copy: true }, true),
    (&bus::BusPair, false),
    (&region::Notification, false),
    (&futex::Futex, false),
    (&pipe::Pipes, true),
    (&uds::Sockets, true),
    (&seq_cst::SeqCstRing, false),
    (&memcpy::Memcpy, true),
    (&pointer::Pointer, false),
];

/// The mechanism of this name.
pub(crate) fn find(name: &str, copied: bool) -> Result<&'static dyn Mechanism> {
    let found = ALL.iter().find(|(mechanism, copies)| mechanism.name() == name && *copies == copied);
    found.map(|(mechanism, _)| *mechanism).ok_or_else(|| format!("no mechanism is called {name}").into())
}

/// The same name, for as long as the program runs.
pub(crate) fn name(name: &str) -> &'static str {
    ALL.iter().map(|(mechanism, _)| mechanism.name()).find(|known| *known == name).unwrap_or("unknown")
}
