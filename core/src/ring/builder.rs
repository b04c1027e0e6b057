//! Where named rings come from.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use super::{Receiver, Sender};
use crate::error::{Error, ErrorKind, Result};
use crate::layout::{ALIGN_MIN, Kind};
use crate::segment::{Attachment, Intent, NamedOptions, Role, Spec, Valid, named, round_capacity};
use crate::sys::mem::Access;
use crate::sys::placement::PlacementOptions;
use crate::wait::WaitPolicy;

/// What a new ring holds if nobody says otherwise, in bytes.
const DEFAULT_CAPACITY: u64 = 1 << 20;

/// A named ring between two processes, or an unnamed one between two threads: where [`Sender`] and [`Receiver`] come
/// from.
///
/// A name (`[A-Za-z0-9._-]{1,80}`, not starting with a dot, not ending in `.sock`) stands in the Ramway directory:
/// `RAMWAY_DIR`, else `/dev/shm/ramway-<euid>`. With a `/` in it, it is a path. Either side may create the ring.
///
/// The name goes when the last handle does, unless messages (or an orderly close) are undelivered: then it stays for
/// the next receiver.
///
/// ```
/// # fn main() -> ramway::Result<()> {
/// # let name = format!("/dev/shm/ramway-doc-ring-{}", std::process::id());
/// let mut tx = ramway::Ring::create(&name).capacity(1 << 16).sender()?;
/// tx.send(1, b"hello")?;
/// tx.close()?;
///
/// // In another process, now or later:
/// let mut rx = ramway::Ring::open(&name).receiver()?;
/// assert_eq!(&*rx.recv()?, b"hello");
/// assert_eq!(rx.recv().unwrap_err().kind(), ramway::ErrorKind::Closed);
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Ring;

impl Ring {
    /// A ring that must be new. `AlreadyExists` if somebody uses the name, if it holds what was never delivered (unless
    /// [`discard`](RingBuilder::discard)), or if something else has it. What dead processes left empty is replaced.
    pub fn create(name: impl AsRef<OsStr>) -> RingBuilder {
        RingBuilder::new(name.as_ref(), Intent::Create)
    }

    /// A ring that exists, also one that dead processes left: its messages are still there. `NotFound` if there is none
    /// (see [`timeout`](RingBuilder::timeout)).
    pub fn open(name: impl AsRef<OsStr>) -> RingBuilder {
        RingBuilder::new(name.as_ref(), Intent::Open)
    }

    /// A ring that is opened if it exists and made if not. `InvalidArgument` if it exists with another capacity or
    /// alignment than was asked for.
    pub fn open_or_create(name: impl AsRef<OsStr>) -> RingBuilder {
        RingBuilder::new(name.as_ref(), Intent::OpenOrCreate)
    }
}

/// How a named ring is to be made or opened; ends in [`sender`](Self::sender) or [`receiver`](Self::receiver).
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
    name: OsString,
    intent: Intent,
    capacity: Option<u64>,
    align: Option<u32>,
    discard: bool,
    persistent: bool,
    mode: u32,
    timeout: Duration,
    allow_disk: bool,
    policy: WaitPolicy,
    membarrier: bool,
    writable_views: bool,
    placement: PlacementOptions,
}

impl RingBuilder {
    fn new(name: &OsStr, intent: Intent) -> Self {
        Self {
            name: name.into(),
            intent,
            capacity: None,
            align: None,
            discard: false,
            persistent: false,
            mode: 0o600,
            timeout: Duration::ZERO,
            allow_disk: false,
            policy: WaitPolicy::default(),
            membarrier: true,
            writable_views: false,
            placement: PlacementOptions::default(),
        }
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

    /// With [`Ring::create`]: undelivered messages that dead processes left are thrown away. Never those of live ones.
    pub fn discard(mut self, yes: bool) -> Self {
        self.discard = yes;
        self
    }

    /// A new ring keeps its name when the last handle goes, also when it is empty.
    pub fn persistent(mut self, yes: bool) -> Self {
        self.persistent = yes;
        self
    }

    /// Permissions of a new ring's file, whatever the umask; default `0o600`. Both sides need to read and write.
    pub fn mode(mut self, mode: u32) -> Self {
        self.mode = mode;
        self
    }

    /// How long to wait for a ring that is not there yet ([`Ring::open`]), or for a role that is taken: a supervisor
    /// may be faster than the kernel is with a process that was killed. Default 0. Independently of it, races with
    /// others who are creating or removing the same name are retried for up to a second.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Accepts a file system that is not in memory. The kernel then writes the pages back as it likes, and a ring of
    /// another boot is never resumed.
    pub fn allow_disk(mut self, yes: bool) -> Self {
        self.allow_disk = yes;
        self
    }

    /// How blocking calls of this handle wait.
    pub fn wait_policy(mut self, policy: WaitPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Locks the data into memory (`mlock`); needs the memlock limit to allow it.
    pub fn lock_memory(mut self, yes: bool) -> Self {
        self.placement.lock_memory = yes;
        self
    }

    /// Puts the data into huge pages, or fails with `Unsupported` naming the setting that stands in the way. Capacities
    /// are then at least a huge page.
    pub fn huge_pages(mut self, yes: bool) -> Self {
        self.placement.huge_pages = yes;
        self
    }

    /// Has the data's memory on this NUMA node.
    pub fn numa_node(mut self, node: u32) -> Self {
        self.placement.numa_node = Some(node);
        self
    }

    /// Faults the whole data in now instead of on first use.
    pub fn prefault(mut self, yes: bool) -> Self {
        self.placement.prefault = yes;
        self
    }

    /// Whether this process may use `membarrier` (the default), which takes a fence off the other side's and this
    /// side's every message. Registering it takes up to 12 ms, once per process.
    pub fn membarrier(mut self, yes: bool) -> Self {
        self.membarrier = yes;
        self
    }

    /// For languages whose views of a received message cannot be read-only.
    #[doc(hidden)]
    pub fn writable_views(mut self, yes: bool) -> Self {
        self.writable_views = yes;
        self
    }

    /// The sending end. One at a time, in the whole system.
    ///
    /// # Errors
    /// `Busy` if the ring has a sender; `NotFound`, `AlreadyExists`, `InvalidArgument` as the three ways to begin say;
    /// `NoSpace`; `AbiMismatch` or `Corrupt` if the name leads to what is no ring of this version (it is left alone);
    /// `Unsupported` for a file system without shared mappings or locks; `PermissionDenied`; `TimedOut` if others never
    /// let go of the name.
    pub fn sender(self) -> Result<Sender> {
        self.sender_while(&|| true)
    }

    /// [`sender`](Self::sender) for languages that have signals to look after: asks `go_on` every 10 ms while it waits,
    /// and gives `Interrupted` once it says no.
    #[doc(hidden)]
    pub fn sender_while(self, go_on: &dyn Fn() -> bool) -> Result<Sender> {
        let attachment = self.attach(Role::Producer, go_on)?;
        Sender::attach(attachment, self.policy, self.membarrier).map_err(|e| self.attaching(e))
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
        Receiver::attach(attachment, self.policy, self.membarrier).map_err(|e| self.attaching(e))
    }

    fn attaching(&self, e: Error) -> Error {
        e.context(format_args!("attaching to the ring '{}'", self.name.to_string_lossy()))
    }

    fn attach(&self, role: Role, go_on: &dyn Fn() -> bool) -> Result<Attachment> {
        let granule = self.placement.granule()?;
        let wanted = self.capacity.map(|capacity| round_capacity(capacity, granule)).transpose()?;
        // Checked here although an existing ring may need none of it: a mistake shows on the first run.
        let spec = Spec::ring(self.capacity.unwrap_or(DEFAULT_CAPACITY), self.align.unwrap_or(ALIGN_MIN), granule)?
            .persistent(self.persistent)
            .named();
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
        let access = if self.writable_views { Access::ReadWrite } else { role.data_access() };
        let segment = named(
            &self.name,
            &NamedOptions {
                intent: self.intent,
                kind: Kind::Ring,
                spec: Some(spec),
                check: &check,
                role_byte: Some(role.lock_byte()),
                access: Access::ReadWrite,
                discard: self.discard,
                mode: self.mode,
                timeout: self.timeout,
                go_on,
                allow_disk: self.allow_disk,
                placement: self.placement,
            },
        )?;
        segment.into_attachment(access, &self.placement).map_err(|e| self.attaching(e))
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
