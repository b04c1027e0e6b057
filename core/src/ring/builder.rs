//! Where named rings come from.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use super::options::{EndOptions, end_options};
use super::{Receiver, Ring, Sender};
use crate::error::{Error, ErrorKind, Result};
use crate::facts::CAPACITY_DEFAULT;
use crate::layout::{ALIGN_MIN, Kind};
use crate::origin::Origin;
use crate::segment::unnamed::{self, Taking};
use crate::segment::{
    Attachment, Intent, Request, Role, SegmentOptions, Spec, Valid, named, round_capacity, segment_options,
};
use crate::sys::mem::Access;

impl Ring {
    /// A ring that must be new. `AlreadyExists` if somebody uses the name, if it holds what was never delivered (unless
    /// [`discard`](RingBuilder::discard)), or if something else has it. What dead processes left empty is replaced.
    pub fn create(name: impl AsRef<OsStr>) -> RingBuilder {
        RingBuilder::new(Source::Name(name.as_ref().into(), Intent::Create))
    }

    /// A ring that exists, also one that dead processes left: its messages are still there. `NotFound` if there is no such ring
    /// (see [`timeout`](RingBuilder::timeout)).
    pub fn open(name: impl AsRef<OsStr>) -> RingBuilder {
        RingBuilder::new(Source::Name(name.as_ref().into(), Intent::Open))
    }

    /// A ring that is opened if it exists and made if not. `InvalidArgument` if it exists with another capacity or
    /// alignment than was asked for.
    pub fn open_or_create(name: impl AsRef<OsStr>) -> RingBuilder {
        RingBuilder::new(Source::Name(name.as_ref().into(), Intent::OpenOrCreate))
    }

    /// A ring without a name, for a child process: ends in [`into_fd`](RingBuilder::into_fd), and each process takes
    /// its role with [`from_fd`](Self::from_fd). Nothing is left behind when the last of them goes. Linux only.
    ///
    /// ```
    /// # fn main() -> ramway::Result<()> {
    /// let ring = ramway::Ring::unnamed().capacity(1 << 16).into_fd()?;
    /// let mut rx = ramway::Ring::from_fd(&ring).receiver()?;
    /// // In the child, which inherited the descriptor (it is close-on-exec until it is told otherwise):
    /// let mut tx = ramway::Ring::from_fd(&ring).sender()?;
    /// tx.send(0, b"hello")?;
    /// assert_eq!(&*rx.recv()?, b"hello");
    /// # Ok(()) }
    /// ```
    pub fn unnamed() -> RingBuilder {
        RingBuilder::new(Source::Unnamed)
    }

    /// The ring behind a descriptor that [`unnamed`](Self::unnamed) made, in this process or in one that handed it
    /// on. The descriptor stays the caller's, and is needed no more once the role is taken.
    pub fn from_fd(fd: impl AsFd) -> RingBuilder {
        let fd = fd.as_fd();
        let copy = rustix::io::fcntl_dupfd_cloexec(fd, 0).map(Arc::new).map_err(|e| e.raw_os_error());
        RingBuilder::new(Source::Descriptor(fd.as_raw_fd(), copy))
    }
}

/// Where a builder's ring comes from.
#[derive(Clone, Debug)]
enum Source {
    Name(OsString, Intent),
    /// To be made, without a name.
    Unnamed,
    /// The caller's number, for errors, and a copy of it or why there is none.
    Descriptor(RawFd, Result<Arc<OwnedFd>, i32>),
}

/// How a ring is to be made or opened; ends in [`sender`](Self::sender) or [`receiver`](Self::receiver), of an unnamed
/// ring in [`into_fd`](Self::into_fd).
///
/// ```
/// # fn main() -> ramway::Result<()> {
/// # let name = format!("/dev/shm/ramway-doc-builder-{}", std::process::id());
/// let rx = ramway::Ring::open_or_create(&name)
///     .capacity(8 << 20)
///     .align(64)
///     .wait_policy(ramway::WaitPolicy::Block)
///     .receiver()?;
/// assert_eq!(rx.capacity(), 8 << 20);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `sender` or `receiver` is called"]
pub struct RingBuilder {
    source: Source,
    capacity: Option<u64>,
    align: Option<u32>,
    segment: SegmentOptions,
    end: EndOptions,
}

impl RingBuilder {
    fn new(source: Source) -> Self {
        Self { source, capacity: None, align: None, segment: SegmentOptions::default(), end: EndOptions::default() }
    }

    /// Bytes of data, frame headers (16 bytes a message) included; rounded up to a power of two of at least a page.
    /// Default 1 MiB. An existing ring must have just this capacity if it is said here.
    pub fn capacity(mut self, bytes: u64) -> Self {
        self.capacity = Some(bytes);
        self
    }

    /// What each payload's address is a multiple of: a power of two from 16 (the default) to 4096, in bytes. An
    /// existing ring must have just this alignment if it is said here.
    pub fn align(mut self, bytes: u32) -> Self {
        self.align = Some(bytes);
        self
    }

    segment_options!();

    end_options!();

    /// The sending end. One at a time, in the whole system.
    ///
    /// # Errors
    /// `Busy` if the ring has a sender; `NotFound`, `AlreadyExists`, `InvalidArgument` as the three ways to begin say;
    /// `NoSpace`; `AbiMismatch` or `Corrupt` if the name leads to what is no ring of this version (it is left alone);
    /// `Unsupported` for a file system without shared mappings or locks; `PermissionDenied`; `TimedOut` if others keep
    /// creating and removing the name.
    pub fn sender(self) -> Result<Sender> {
        self.sender_while(&|| true)
    }

    /// [`sender`](Self::sender) for languages that have signals to handle: asks `go_on` every 10 ms while it waits,
    /// and gives `Interrupted` once it says no.
    #[doc(hidden)]
    pub fn sender_while(self, go_on: &dyn Fn() -> bool) -> Result<Sender> {
        let attachment = self.attach(Role::Producer, go_on)?;
        self.end.sender(attachment).map_err(|e| self.attaching(e))
    }

    /// The receiving end. One at a time, in the whole system. It starts with what is undelivered.
    ///
    /// # Errors
    /// As for [`sender`](Self::sender).
    pub fn receiver(self) -> Result<Receiver> {
        self.receiver_while(&|| true)
    }

    /// [`receiver`](Self::receiver) as [`sender_while`](Self::sender_while) is to `sender`.
    #[doc(hidden)]
    pub fn receiver_while(self, go_on: &dyn Fn() -> bool) -> Result<Receiver> {
        let attachment = self.attach(Role::Consumer, go_on)?;
        self.end.receiver(attachment).map_err(|e| self.attaching(e))
    }

    /// Makes the ring of [`Ring::unnamed`], and takes no role: [`Ring::from_fd`] does, in as many processes as the
    /// descriptor is handed to. It is close-on-exec. What concerns an end (how it waits, locked or prefaulted memory)
    /// is said there.
    ///
    /// # Errors
    /// `InvalidArgument` if the builder did not begin with [`Ring::unnamed`], or for an option that such a ring does not
    /// have; `NoSpace`; `Unsupported`.
    pub fn into_fd(self) -> Result<OwnedFd> {
        if !matches!(self.source, Source::Unnamed) {
            let text =
                format!("{}: only a ring without a name is made as a descriptor; begin with unnamed", self.shown());
            return Err(Error::new(ErrorKind::InvalidArgument, text));
        }
        self.check_options()?;
        let doing = |e: Error| e.context("making a ring without a name");
        unnamed::create(&self.spec().map_err(doing)?, &self.segment.placement).map_err(doing)
    }

    fn attaching(&self, e: Error) -> Error {
        e.context(format_args!("attaching to {}", self.shown()))
    }

    fn shown(&self) -> String {
        match &self.source {
            Source::Name(name, _) => format!("the ring '{}'", name.to_string_lossy()),
            Source::Unnamed => "a ring without a name".into(),
            Source::Descriptor(fd, _) => format!("the ring of descriptor {fd}"),
        }
    }

    /// What this beginning would pass over in silence.
    fn check_options(&self) -> Result<()> {
        let intent = match self.source {
            Source::Name(_, intent) => Some(intent),
            Source::Unnamed | Source::Descriptor(..) => None,
        };
        self.segment.check(intent).map_err(|e| e.context(format_args!("opening {}", self.shown())))
    }

    /// What to make.
    fn spec(&self) -> Result<Spec> {
        let capacity = self.capacity.unwrap_or(CAPACITY_DEFAULT);
        let spec = Spec::ring(capacity, self.align.unwrap_or(ALIGN_MIN), self.segment.placement.granule()?)?;
        Ok(spec.persistent(self.segment.persistent).named())
    }

    fn attach(&self, role: Role, go_on: &dyn Fn() -> bool) -> Result<Attachment> {
        self.check_options()?;
        let granule = self.segment.placement.granule()?;
        let wanted = self.capacity.map(|capacity| round_capacity(capacity, granule)).transpose()?;
        // Checked here although an existing ring may need none of it: a mistake shows on the first run.
        let spec = self.spec()?;
        let check = |valid: &Valid| {
            let found = valid.rings[0].expect("a segment of kind ring has a ring");
            if let Some(wanted) = wanted.filter(|&wanted| wanted != found.capacity) {
                return Err(differs("capacity", wanted, found.capacity));
            }
            if let Some(wanted) = self.align.filter(|&wanted| wanted != found.align) {
                return Err(differs("alignment", wanted.into(), found.align.into()));
            }
            Ok(())
        };
        let access = self.end.access(role);
        let (name, intent) = match &self.source {
            Source::Name(name, intent) => (name, *intent),
            Source::Unnamed => {
                let text = "a ring without a name is made with into_fd; from_fd takes a role of what that gives";
                return Err(Error::new(ErrorKind::InvalidArgument, text));
            }
            Source::Descriptor(fd, copy) => {
                let taking = Taking { check: &check, role, timeout: self.segment.timeout, go_on };
                let copy = copy.as_ref().map_err(|&errno| Error::os(errno, format_args!("descriptor {fd}")));
                return copy
                    .and_then(|copy| unnamed::attach(copy.as_fd(), &taking))
                    .and_then(|segment| {
                        segment.into_attachment(access, &self.segment.placement, Origin::unnamed("unnamed ring"))
                    })
                    .map_err(|e| self.attaching(e));
            }
        };
        let segment = named(
            name,
            &Request {
                intent,
                kind: Kind::Ring,
                spec: Some(spec),
                check: &check,
                role_byte: Some(role.lock_byte()),
                access: Access::ReadWrite,
                options: &self.segment,
                go_on,
            },
        )?;
        let origin = Origin::named("ring", name);
        segment.into_attachment(access, &self.segment.placement, origin).map_err(|e| self.attaching(e))
    }
}

fn differs(what: &str, wanted: u64, found: u64) -> Error {
    Error::new(
        ErrorKind::InvalidArgument,
        format!(
            "it exists, and its {what} is {found} bytes, not the {wanted} asked for; leave it out to take what is there"
        ),
    )
}
