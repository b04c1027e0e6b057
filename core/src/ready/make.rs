//! Which kind of descriptor a handle gets, and what it keeps alive.

use std::mem::ManuallyDrop;
use std::sync::Arc;

use super::checker::{self, Watched};
use super::helper::Helper;
#[cfg(target_os = "linux")]
use super::uring::Uring;
use super::{Descriptor, MappedWord, Readiness};
use crate::error::{Error, ErrorKind, Result};
use crate::layout::RoleLine;
use crate::segment::{Header, Link, Probe, Role};
use crate::sync::{AtomicU32, AtomicU64};
use crate::sys::{fork, futex};

/// How a descriptor is made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Method {
    Uring,
    Thread,
}

impl Readiness {
    /// For a side of a ring, whose lines lie in `header`. Readable until the first `try_` call that finds nothing.
    pub(crate) fn for_role(
        link: &Link,
        me: Role,
        mine: &RoleLine,
        peer: &RoleLine,
        header: Arc<Header>,
    ) -> Result<Self> {
        // SAFETY: both lines lie in the header page.
        let word = |word: &AtomicU32| unsafe { MappedWord::new(word, header.clone()) };
        let peer = checker::PeerWords { epoch: word(&peer.epoch), flags: word(&peer.flags), shared: false };
        Self::make(word(&mine.wait), link, Some((me, peer)))
    }

    /// For a topic's publisher, which sleeps on `wait` in `header`'s mapping. Subscribers are its own to check.
    pub(crate) fn for_publisher(link: &Link, wait: &AtomicU32, header: Arc<Header>) -> Result<Self> {
        // SAFETY: the word lies in the header's mapping.
        Self::make(unsafe { MappedWord::new(wait, header) }, link, None)
    }

    /// For a topic's subscriber: `word` is the one that all share, `publisher` the line of the one publisher.
    pub(crate) fn for_subscriber(
        link: &Link,
        word: &AtomicU64,
        publisher: &RoleLine,
        header: Arc<Header>,
    ) -> Result<Self> {
        // SAFETY: they lie in the header's mapping.
        let mapped = |word: &AtomicU32| unsafe { MappedWord::new(word, header.clone()) };
        let peer =
            checker::PeerWords { epoch: mapped(&publisher.epoch), flags: mapped(&publisher.flags), shared: true };
        Self::make(mapped(futex::low(word)), link, Some((Role::Consumer, peer)))
    }

    /// For a region. Its name is all that can go.
    pub(crate) fn for_region(word: MappedWord, link: &Link) -> Result<Self> {
        Self::make(word, link, None)
    }

    fn make(word: MappedWord, link: &Link, peer: Option<(Role, checker::PeerWords)>) -> Result<Self> {
        let chosen = match std::env::var("RAMWAY_READINESS").as_deref() {
            Ok("uring") => Some(Method::Uring),
            Ok("thread") => Some(Method::Thread),
            Ok(other) if !other.is_empty() => {
                let text = format!("RAMWAY_READINESS is \"{other}\": expected \"uring\" or \"thread\"");
                return Err(Error::new(ErrorKind::InvalidArgument, text));
            }
            _ => None,
        };
        let role = peer.as_ref().map(|(role, _)| *role);
        let probe = link.probe(role);
        let socket = probe.clone().filter(Probe::is_socket);
        let (descriptor, polls): (Box<dyn Descriptor>, bool) = match chosen {
            Some(Method::Thread) => (Box::new(Helper::new(word.clone())?), false),
            _ => match uring(word.clone(), socket.clone()) {
                Ok(uring) => (uring, socket.is_some()),
                Err(e) if chosen.is_none() && e.kind() == ErrorKind::Unsupported => {
                    (Box::new(Helper::new(word.clone())?), false)
                }
                Err(e) => return Err(e),
            },
        };
        let watched = match probe {
            Some(probe) if !polls => checker::register(checker::Entry::new(word, peer.map(|(_, peer)| peer), probe))?,
            _ => Watched::nothing(),
        };
        descriptor.signal();
        Ok(Self { descriptor: ManuallyDrop::new(descriptor), watched, generation: fork::generation() })
    }
}

#[cfg(target_os = "linux")]
fn uring(word: MappedWord, socket: Option<Probe>) -> Result<Box<dyn Descriptor>> {
    Ok(Box::new(Uring::new(word, socket)?))
}

#[cfg(not(target_os = "linux"))]
fn uring(_: MappedWord, _: Option<Probe>) -> Result<Box<dyn Descriptor>> {
    Err(Error::new(ErrorKind::Unsupported, "this system has no io_uring"))
}
