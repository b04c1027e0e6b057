//! One side of a ring or a topic: its positions, and the endpoint that they stand on.

use super::fail;
use super::log::Shape;
use crate::endpoint::Endpoint;
use crate::endpoint::side::Side;
use crate::endpoint::state::{Rules, State};
use crate::layout::RingBlock;
use crate::segment::Attachment;
use crate::sys::membarrier;
use crate::wait::{Deadline, WaitLimit, WaitPolicy};
use crate::{Error, ErrorKind, Result};

/// Where a log lies, and where one side stands in it: what a binding begins with that is the side itself.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// The log's words in the header page: of a ring a [`RingBlock`].
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
pub trait Positions: Sized {
    /// What the side stands in.
    type Log: Shape;

    /// Its words.
    type Word: Side;

    /// What a call says that does not wait, where it cannot go on.
    const NOT_NOW: ErrorKind;

    /// Takes the side over: reads and checks the positions that the last holder left.
    ///
    /// # Safety
    /// `block`, `data` (2 × `capacity` bytes, the second half a mirror of the first; writable for a sender, else
    /// readable) and what `place` leads to stay valid as long as the result is used, `capacity` and `align` have been
    /// validated, and no one else in the system holds this side of the log.
    unsafe fn new(
        block: *const <Self::Log as Shape>::Block,
        data: *mut u8,
        capacity: u64,
        align: u32,
        place: &<Self::Log as Shape>::Place,
        rules: Rules,
    ) -> Result<Self, ErrorKind>;

    /// The words of this side of an attachment.
    fn word(attachment: &Attachment<Self::Log>, membarrier_capable: bool) -> Self::Word;

    /// What both sides have among their positions.
    fn state(&self) -> &State;

    /// What never changes.
    fn rules(&self) -> Rules;

    /// Acts on the peer's flags, after it has attached, closed or changed its mind about fences.
    fn peer_changed(&mut self);

    /// The slow half of a change of the position: acts on the peer's flags, and wakes it if it waits.
    fn wake_slow(&mut self);

    /// [`Half::wait_for_peer`].
    fn wait_for_peer(half: &mut Half<Self>, wait_limit: WaitLimit) -> Result<u32>;

    /// Where a binding begins that is the side itself.
    fn start(&self) -> Start;

    /// Goes on where such a binding is; see [`RawEndpoint::follow`](super::raw::RawEndpoint::follow).
    fn follow(&mut self, own: u64, peer: u64);

    /// An end of the peer is about to be told.
    fn end_is_told(&mut self, _: ErrorKind) {}

    /// This side is about to say that it closes.
    fn closing(&mut self) {}

    /// Whether something is to be told before anything else.
    fn has_pending(&self) -> bool {
        false
    }

    /// What is to be told before anything else.
    fn take_pending(&mut self) -> Option<Error> {
        None
    }

    /// Whether this side cannot close before it goes.
    fn must_stay(&self) -> bool {
        false
    }
}

/// A side of a ring or a topic.
pub struct Half<H: Positions> {
    pub(crate) hot: H,
    pub(crate) endpoint: Endpoint<H::Log, H::Word>,
}

impl<H: Positions> Half<H> {
    /// Takes the side of an attachment whose lock this process holds. Boxed: the fork registry and C's inline functions
    /// keep the address of `hot`.
    pub(crate) fn attach(
        attachment: Attachment<H::Log>,
        policy: WaitPolicy,
        use_membarrier: bool,
    ) -> Result<Box<Self>> {
        let membarrier_capable = use_membarrier && membarrier::is_available();
        let rules = Rules {
            endings_are_final: attachment.link.endings_are_final().into(),
            membarrier_capable: membarrier_capable.into(),
        };
        let (block, data) = (attachment.block.as_ptr(), attachment.data.as_ptr());
        // SAFETY: the attachment owns the mappings and is kept beside the positions; its geometry was validated, and its
        // lock (or the handshake, or the caller of `attach_sender`) makes this the only holder of the side.
        let hot = unsafe { H::new(block, data, attachment.capacity, attachment.align, &attachment.place, rules) }
            .map_err(fail::<H::Log>)?;
        let word = H::word(&attachment, membarrier_capable);
        let endpoint = Endpoint::new(attachment, word, policy);
        let mut half = Box::new(Self { hot, endpoint });
        // SAFETY: the state lives in the box, as long as the endpoint beside it.
        unsafe { half.endpoint.attach(&half.hot.state().state) };
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
        self.endpoint.with_name(fail::<H::Log>(kind))
    }

    /// Waits until `ready` says true; without a deadline it does not wait. Gives no frame and no address: see
    /// `Half::recv` of the receiver.
    pub(crate) fn wait(
        &mut self,
        deadline: Option<Deadline>,
        ready: impl Fn(&mut H) -> Result<bool, ErrorKind>,
    ) -> Result<()> {
        let Self { hot, endpoint } = self;
        match endpoint.wait(deadline, || ready(hot).map_err(fail::<H::Log>)) {
            Ok(true) => Ok(()),
            Ok(false) => Err(H::NOT_NOW.into()),
            Err(end) => {
                if let Some(pending) = hot.take_pending() {
                    return Err(pending);
                }
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

    /// Waits until somebody is attached as the other side and lives; see [`Endpoint::wait_for_peer`].
    pub(crate) fn wait_for_peer(&mut self, wait_limit: WaitLimit) -> Result<u32> {
        self.check()?;
        H::wait_for_peer(self, wait_limit).map_err(|e| self.endpoint.with_name(e))
    }

    /// Whether the other side has ended, or something else is to be told: for those who check several handles. The kernel is
    /// asked only if `ask_kernel`; the next call on this handle then asks it too.
    pub(crate) fn has_ended(&mut self, ask_kernel: bool) -> bool {
        let Endpoint { word, waiting, attachment, .. } = &mut self.endpoint;
        let ended = word.check_end(&attachment.link, ask_kernel).is_err();
        if ended && ask_kernel {
            waiting.peer_has_ended();
        }
        ended || self.hot.has_pending()
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
