//! What can be waited for.

use std::num::NonZeroU64;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64 as Counter;
use std::time::Duration;

use crate::endpoint::word::RoleWord;
use crate::facts::UNORDERED_INTERVAL;
use crate::ring::consumer::Consumer;
use crate::ring::half::{Half, Positions};
use crate::ring::log::Log;
use crate::ring::producer::{Producer, Writing};
use crate::sync::{AtomicU32, Ordering};
use crate::sys::futex;
use crate::topic::word::{PublisherWord, SubscriberWord};
use crate::wait::{POLL_INTERVAL, Word};
use crate::{ErrorKind, Listener, Receiver, Region, Result, Ring, Sender};

/// What a [`Select`](crate::Select) can wait for. Not for other crates to implement.
pub trait Source: sealed::Sealed {
    /// Whether it is ready. The kernel is asked whether its peer lives only if `ask_kernel`.
    #[doc(hidden)]
    fn check(&mut self, ask_kernel: bool) -> Check;

    /// A cheap guess whether it is ready: one load.
    #[doc(hidden)]
    fn peek(&mut self) -> bool;

    /// Says in its word that somebody waits, without any order. `None`: it is a descriptor.
    #[doc(hidden)]
    fn arm(&mut self) -> Option<ArmedWord>;

    /// The longest sleep, where all words were ordered by a membarrier, or by a fence of this side alone.
    #[doc(hidden)]
    fn longest(&self, membarrier: bool) -> Duration;

    /// Whether a waker leaves its fence out, for which a membarrier makes up; asked after a fence.
    #[doc(hidden)]
    fn needs_membarrier(&self) -> bool {
        self.longest(false) < self.longest(true)
    }

    /// Nobody waits any more.
    #[doc(hidden)]
    fn disarm(&mut self);

    /// What is polled instead of a word.
    #[doc(hidden)]
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Whether its word has a readiness descriptor for a waiter already.
    #[doc(hidden)]
    fn has_descriptor(&self) -> bool {
        false
    }
}

mod sealed {
    pub trait Sealed {}
}
use sealed::Sealed;

impl<S: Source + ?Sized> Sealed for &mut S {}

/// Of any type, in a list with others.
impl<S: Source + ?Sized> Source for &mut S {
    fn check(&mut self, ask_kernel: bool) -> Check {
        (**self).check(ask_kernel)
    }

    #[inline(always)]
    fn peek(&mut self) -> bool {
        (**self).peek()
    }

    fn arm(&mut self) -> Option<ArmedWord> {
        (**self).arm()
    }

    fn longest(&self, membarrier: bool) -> Duration {
        (**self).longest(membarrier)
    }

    fn needs_membarrier(&self) -> bool {
        (**self).needs_membarrier()
    }

    fn disarm(&mut self) {
        (**self).disarm();
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        (**self).descriptor()
    }

    fn has_descriptor(&self) -> bool {
        (**self).has_descriptor()
    }
}

/// What a check came to.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    Ready,
    NotYet,
    /// To be polled, with the other descriptors.
    Descriptor,
}

/// A word that is to be slept on.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct ArmedWord {
    pub(super) word: NonNull<AtomicU32>,
    pub(super) expected: u32,
    /// The handle's own: another handle's word may come to lie at the same address.
    #[cfg_attr(
        not(target_os = "linux"),
        allow(dead_code, reason = "only an io_uring keeps words from one wait to the next")
    )]
    pub(super) handle: u64,
}

// SAFETY: `word` is followed only inside the wait whose sources are borrowed, and keep it mapped; which thread waits plays no
// part in it. What is left of it after the wait is replaced before the next one, and is not followed.
unsafe impl Send for ArmedWord {}
// SAFETY: as above; a shared reference follows nothing.
unsafe impl Sync for ArmedWord {}

/// A number that no other handle of this process has.
fn next_handle() -> NonZeroU64 {
    static NEXT: Counter = Counter::new(1);
    // Relaxed: only that each gets another one counts.
    NonZeroU64::new(NEXT.fetch_add(1, Ordering::Relaxed)).expect("begins with 1, and does not wrap in 500 years")
}

/// A side's words, of which one is slept on.
pub trait FutexWord: Word {
    /// What the kernel compares.
    fn futex_word(&self) -> &AtomicU32;
}

impl FutexWord for RoleWord {
    fn futex_word(&self) -> &AtomicU32 {
        self.futex()
    }
}

impl FutexWord for PublisherWord {
    fn futex_word(&self) -> &AtomicU32 {
        self.futex()
    }
}

impl FutexWord for SubscriberWord {
    fn futex_word(&self) -> &AtomicU32 {
        futex::low(self.shared())
    }
}

/// Says in a side's word that somebody waits.
fn arm_half<H: Positions<Word: FutexWord>>(half: &mut Half<H>) -> ArmedWord {
    let endpoint = &mut half.endpoint;
    let handle = endpoint.handle.get_or_insert_with(next_handle).get();
    let expected = endpoint.word.set();
    ArmedWord { word: endpoint.word.futex_word().into(), expected, handle }
}

/// Whether a side can go on, has ended, or is dead of something: all of these are worth a call.
fn check_half<H: Positions>(
    half: &mut Half<H>,
    ask_kernel: bool,
    mut ready: impl FnMut(&mut H) -> Result<bool, ErrorKind>,
) -> Check {
    // What the handle is dead of, or what is there, or how the other side ended.
    if half.check().is_err() || ready(&mut half.hot).unwrap_or(true) || half.has_ended(ask_kernel) {
        Check::Ready
    } else {
        Check::NotYet
    }
}

macro_rules! by_word {
    () => {
        fn arm(&mut self) -> Option<ArmedWord> {
            Some(arm_half(self.end()))
        }

        fn longest(&self, membarrier: bool) -> Duration {
            self.end_ref().endpoint.word.longest(membarrier)
        }

        fn disarm(&mut self) {
            self.end().endpoint.word.disarm();
        }

        fn has_descriptor(&self) -> bool {
            self.end_ref().endpoint.readiness.is_some()
        }
    };
}

impl<L: Log> Sealed for Receiver<L> {}

impl<L: Log> Receiver<L> {
    fn end(&mut self) -> &mut Half<Consumer<L>> {
        &mut self.half
    }

    fn end_ref(&self) -> &Half<Consumer<L>> {
        &self.half
    }
}

/// Ready when [`try_recv`](Self::try_recv) has something else to say than `Empty`.
impl<L: Log<ReceiverWord: FutexWord>> Source for Receiver<L> {
    fn check(&mut self, ask_kernel: bool) -> Check {
        self.half.hot.release();
        check_half(&mut self.half, ask_kernel, |hot| hot.has_frame())
    }

    #[inline]
    fn peek(&mut self) -> bool {
        self.half.hot.has_frame().unwrap_or(true)
    }

    by_word!();
}

/// A receiver of a binding that keeps count of the frames it holds itself: a wait gives none of them back. For bindings; not
/// part of the stable API.
#[doc(hidden)]
#[derive(Debug)]
pub struct Holding<'a, L: Log = Ring>(pub &'a mut Receiver<L>);

impl<L: Log> Sealed for Holding<'_, L> {}

impl<L: Log> Holding<'_, L> {
    fn end(&mut self) -> &mut Half<Consumer<L>> {
        &mut self.0.half
    }

    fn end_ref(&self) -> &Half<Consumer<L>> {
        &self.0.half
    }
}

impl<L: Log<ReceiverWord: FutexWord>> Source for Holding<'_, L> {
    fn check(&mut self, ask_kernel: bool) -> Check {
        check_half(&mut self.0.half, ask_kernel, |hot| hot.has_frame())
    }

    fn peek(&mut self) -> bool {
        self.0.half.hot.has_frame().unwrap_or(true)
    }

    by_word!();
}

/// Room for a message of a certain size in a sender: made by [`Sender::room`].
#[derive(Debug)]
pub struct Room<'a, L: Log = crate::Ring> {
    sender: &'a mut Sender<L>,
    len: usize,
}

impl<L: Log> Sender<L> {
    /// What a [`Select`](crate::Select) waits for that is to send: ready when [`try_reserve`](Self::try_reserve) of `len` bytes
    /// has something else to say than `Full`.
    pub fn room(&mut self, len: usize) -> Room<'_, L> {
        Room { sender: self, len }
    }
}

impl<L: Log> Sealed for Room<'_, L> {}

impl<L: Log> Room<'_, L> {
    fn end(&mut self) -> &mut Half<Producer<L>> {
        &mut self.sender.half
    }

    fn end_ref(&self) -> &Half<Producer<L>> {
        &self.sender.half
    }

    fn fits(hot: &mut Producer<L>, len: usize) -> Result<bool, ErrorKind> {
        match hot.try_reserve(len as u64) {
            Ok(_) => Ok(true),
            Err(ErrorKind::Full) => Ok(false),
            Err(kind) => Err(kind),
        }
    }
}

impl<L: Log<SenderWord: FutexWord>> Source for Room<'_, L> {
    fn check(&mut self, ask_kernel: bool) -> Check {
        let len = self.len;
        check_half(&mut self.sender.half, ask_kernel, |hot| Self::fits(hot, len))
    }

    fn peek(&mut self) -> bool {
        Self::fits(&mut self.sender.half.hot, self.len).unwrap_or(true)
    }

    by_word!();
}

/// What a receiver gives back: ready when it has released everything before a position of the sender, or has ended.
#[derive(Debug)]
pub(crate) struct Released<'a> {
    pub(crate) sender: &'a mut Sender,
    /// `None`: nothing is waited for but the end.
    pub(crate) until: Option<u64>,
    /// The receiver has more than that: it need not say when it has given a part of it back.
    pub(crate) is_part: bool,
}

impl Sealed for Released<'_> {}

impl Released<'_> {
    fn end(&mut self) -> &mut Half<Producer> {
        &mut self.sender.half
    }

    fn end_ref(&self) -> &Half<Producer> {
        &self.sender.half
    }

    fn is_released(hot: &mut Producer, until: Option<u64>) -> Result<bool, ErrorKind> {
        // Room for nothing: it loads how far the receiver has given back, and checks that.
        <Ring as Writing>::fits_after_refresh(hot, 0)?;
        Ok(until.is_some_and(|until| hot.head.wrapping_sub(until) >> 63 == 0))
    }
}

impl Source for Released<'_> {
    fn check(&mut self, ask_kernel: bool) -> Check {
        let until = self.until;
        check_half(&mut self.sender.half, ask_kernel, |hot| Self::is_released(hot, until))
    }

    fn peek(&mut self) -> bool {
        Self::is_released(&mut self.sender.half.hot, self.until).unwrap_or(true)
    }

    fn arm(&mut self) -> Option<ArmedWord> {
        Some(arm_half(self.end()))
    }

    fn longest(&self, membarrier: bool) -> Duration {
        let longest = self.end_ref().endpoint.word.longest(membarrier);
        // A receiver wakes its sender when a quarter is free or all is given back, not earlier.
        if self.is_part { longest.min(UNORDERED_INTERVAL) } else { longest }
    }

    fn needs_membarrier(&self) -> bool {
        let word = &self.end_ref().endpoint.word;
        word.longest(false) < word.longest(true)
    }

    fn disarm(&mut self) {
        self.end().endpoint.word.disarm();
    }

    fn has_descriptor(&self) -> bool {
        self.end_ref().endpoint.readiness.is_some()
    }
}

macro_rules! by_notification {
    () => {
        fn check(&mut self, ask_kernel: bool) -> Check {
            if self.has_news() || self.has_ended(ask_kernel) { Check::Ready } else { Check::NotYet }
        }

        fn peek(&mut self) -> bool {
            self.has_news()
        }

        fn arm(&mut self) -> Option<ArmedWord> {
            let handle = self.handle.get_or_init(next_handle).get();
            let (word, expected) = self.set_word();
            Some(ArmedWord { word: word.into(), expected, handle })
        }

        fn longest(&self, _: bool) -> Duration {
            // Its word is ordered by its own exchange.
            if self.is_read_only() { crate::facts::REGION_POLL_INTERVAL } else { POLL_INTERVAL }
        }

        fn disarm(&mut self) {}

        fn has_descriptor(&self) -> bool {
            false
        }
    };
}

impl Sealed for Region {}

/// Ready when [`try_wait`](Self::try_wait) says true.
impl Source for Region {
    by_notification!();
}

impl Sealed for &Region {}

/// Likewise: a region may be used by several threads.
impl Source for &Region {
    by_notification!();
}

macro_rules! by_descriptor {
    () => {
        fn check(&mut self, _: bool) -> Check {
            Check::Descriptor
        }

        fn peek(&mut self) -> bool {
            false
        }

        fn arm(&mut self) -> Option<ArmedWord> {
            None
        }

        fn longest(&self, _: bool) -> Duration {
            POLL_INTERVAL
        }

        fn disarm(&mut self) {}

        fn descriptor(&self) -> Option<BorrowedFd<'_>> {
            Some(self.as_fd())
        }
    };
}

impl Sealed for Listener {}

/// Ready when [`try_accept`](Self::try_accept) is worth a call.
impl Source for Listener {
    by_descriptor!();
}

/// A descriptor of any kind that is ready when it is readable, or has an error or a hang-up.
#[derive(Clone, Copy, Debug)]
pub struct Readable<'a>(pub BorrowedFd<'a>);

impl Sealed for Readable<'_> {}

impl AsFd for Readable<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0
    }
}

impl Source for Readable<'_> {
    by_descriptor!();
}
