//! One side of a ring: its positions, and the endpoint that they stand on.

use super::fail;
use crate::endpoint::Endpoint;
use crate::endpoint::state::{Rules, State};
use crate::layout::RingBlock;
use crate::segment::{Attachment, Role};
use crate::sys::membarrier;
use crate::wait::{Deadline, WaitLimit, WaitPolicy};
use crate::{Error, ErrorKind, Result};

/// Where a ring lies, and where one side stands in it: what a binding begins with that is the side itself.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// The ring's words in the header page.
    pub block: *const RingBlock,
    /// The data area, mapped twice back to back.
    pub data: *const u8,
    /// Bytes of the data area.
    pub capacity: u64,
    /// Payload alignment.
    pub align: u32,
    /// This side's position: the end of the last committed frame, or what is released.
    pub own: u64,
    /// The other side's position as last seen.
    pub peer: u64,
    /// The other side's flags as last acted upon.
    pub peer_flags: u32,
    /// Whether an end of the other side is final: no successor can attach.
    pub endings_are_final: bool,
    /// A sender's: bytes of the longest payload that ever fits; else 0.
    pub max_len: u64,
    /// A sender's: which of the two last-tag records is written next; else 0.
    pub next_last_tag: u32,
}

/// The positions of a side, and the rules for them.
pub(crate) trait Positions: Sized {
    const ROLE: Role;
    /// What a call says that does not wait, where it cannot go on.
    const NOT_NOW: ErrorKind;

    /// Takes the role over: reads and checks the positions that the last holder left.
    ///
    /// # Safety
    /// `block` and `data` (2 × `capacity` bytes, the second half a mirror of the first; writable for a producer, else
    /// readable) stay valid as long as the result is used, `capacity` and `align` have been validated, and no one else
    /// in the system holds this role of the ring.
    unsafe fn new(
        block: *const RingBlock,
        data: *mut u8,
        capacity: u64,
        align: u32,
        rules: Rules,
    ) -> Result<Self, ErrorKind>;

    /// What both sides have among their positions.
    fn state(&self) -> &State;

    /// What never changes.
    fn rules(&self) -> Rules;

    /// Acts on the peer's flags, after it has attached, closed or changed its mind about fences.
    fn peer_changed(&mut self);

    /// The slow half of a change of the position: acts on the peer's flags, and wakes it if it waits.
    fn wake_slow(&mut self);

    /// Where a binding begins that is the side itself.
    fn start(&self) -> Start;

    /// Goes on where such a binding is; see [`RawEndpoint::follow`](super::raw::RawEndpoint::follow).
    fn follow(&mut self, own: u64, peer: u64);

    /// An end of the peer is about to be told.
    fn end_is_told(&mut self, _: ErrorKind) {}

    /// This side is about to say that it closes.
    fn closing(&mut self) {}
}

/// A side of a ring.
pub(crate) struct Half<H> {
    pub(crate) hot: H,
    pub(crate) endpoint: Endpoint,
}

impl<H: Positions> Half<H> {
    /// Takes the role of an attachment whose role lock this process holds. Boxed: the fork registry and C's inline
    /// functions keep the address of `hot`.
    pub(crate) fn attach(attachment: Attachment, policy: WaitPolicy, use_membarrier: bool) -> Result<Box<Self>> {
        let membarrier_capable = use_membarrier && membarrier::is_available();
        let rules = Rules {
            endings_are_final: attachment.link.endings_are_final().into(),
            membarrier_capable: membarrier_capable.into(),
        };
        let (block, data) = (attachment.block.as_ptr(), attachment.data.as_ptr());
        // SAFETY: the attachment owns both mappings and is kept beside the positions; its geometry was validated, and its
        // role lock (or the handshake, or the caller of `attach_sender`) makes this the only holder of the role.
        let hot = unsafe { H::new(block, data, attachment.capacity, attachment.align, rules) }.map_err(fail)?;
        let endpoint = Endpoint::new(attachment, H::ROLE, policy, membarrier_capable);
        let mut half = Box::new(Self { hot, endpoint });
        // SAFETY: the state lives in the box, as long as the endpoint beside it.
        unsafe { half.endpoint.attach(&half.hot.state().state, membarrier_capable) };
        half.hot.peer_changed();
        Ok(half)
    }

    /// What this handle is dead of, if anything.
    pub(crate) fn check(&self) -> Result<()> {
        self.hot.state().check().map_err(|kind| self.error(kind))
    }

    /// The error for a kind that the hot path met.
    #[cold]
    pub(crate) fn error(&self, kind: ErrorKind) -> Error {
        self.endpoint.with_name(fail(kind))
    }

    /// Waits until `ready` says true; without a deadline it does not wait. Gives no frame and no address: see
    /// `Half::recv` of the receiver.
    pub(crate) fn wait(
        &mut self,
        deadline: Option<Deadline>,
        ready: impl Fn(&mut H) -> Result<bool, ErrorKind>,
    ) -> Result<()> {
        let Self { hot, endpoint } = self;
        match endpoint.wait(deadline, || ready(hot).map_err(fail)) {
            Ok(true) => Ok(()),
            Ok(false) => Err(H::NOT_NOW.into()),
            Err(end) => {
                if matches!(end.kind(), ErrorKind::Closed | ErrorKind::PeerDead) {
                    hot.end_is_told(end.kind());
                    if hot.rules().endings_are_final != 0 {
                        hot.state().die(end.kind());
                    }
                }
                Err(endpoint.with_name(end))
            }
        }
    }

    /// [`Endpoint::wait_for_peer`] where the handle is alive.
    pub(crate) fn wait_for_peer(&mut self, wait_limit: WaitLimit) -> Result<u32> {
        self.check()?;
        self.endpoint.wait_for_peer(wait_limit).map_err(|e| self.endpoint.with_name(e))
    }

    /// Tells the peer that this was all. The role stays.
    pub(crate) fn close(&mut self) {
        // In a fork's child the ring is the parent's: touch nothing.
        if !self.endpoint.is_detached() {
            self.hot.closing();
            self.endpoint.close();
        }
    }
}
