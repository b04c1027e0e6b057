//! What an endpoint needs of a side's words.

use super::Waker;
use super::end::OnePeer;
use crate::Result;
use crate::ready::Readiness;
use crate::segment::{Header, Link};
use crate::wait::Word;
use std::sync::Arc;

/// The words of a side, and what it knows of the other one. A ring's sides are two roles of one kind (`word.rs`), a
/// topic's are a publisher and its subscribers (`topic/word.rs`).
pub trait Side: Word {
    /// Sets this side's words, whose lock it holds, and gives its epoch. The caller wakes the other side after that.
    fn attach(&mut self) -> u32;

    /// Says in this side's words that it closes. The caller wakes the other side after that.
    fn close(&self);

    /// Wakes the other side, whether it sleeps or not.
    fn wake_other(&self);

    /// Asked while there is nothing to go on with: how the other side has ended.
    fn check_end(&self, link: &Link, ask_kernel: bool) -> Result<()>;

    /// A number that changes when somebody attaches as the other side.
    fn other_epoch(&self) -> u32;

    /// Whether somebody is attached as the other side and lives (one system call).
    fn is_other_alive(&self, link: &Link) -> bool;

    /// Whether the other side sleeps, or is about to.
    fn other_waits(&self) -> bool;

    /// What ends this side's waits from another thread. `header` keeps the word mapped.
    fn waker(&self, header: Arc<Header>) -> Waker;

    /// A descriptor that waits by this side's word. `header` keeps the word mapped.
    fn readiness(&self, link: &Link, header: Arc<Header>) -> Result<Readiness>;
}

/// A side that has one peer.
pub trait FacesOne: Side {
    /// The peer.
    fn peer(&self) -> &OnePeer;
}
