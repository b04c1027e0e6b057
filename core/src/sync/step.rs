//! The steps of the protocol that the models show to be necessary.

use super::{Ordering, keep};

/// A step that the protocol cannot do without. Each has a model that fails when it is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// `Release` of a published position.
    Publish,
    /// `Acquire` of the other side's position.
    AcquirePosition,
    /// The fence of a waker that is not fence-free.
    WakerFence,
    /// The membarrier of a sleeper whose waker is fence-free.
    Membarrier,
    /// The fence of a sleeper without membarrier.
    SleeperFence,
    /// The short intervals of a sleeper that has no membarrier while its waker is fence-free.
    ShortIntervals,
    /// The fence between setting ROLE_FENCE_FREE and the first publish without a fence.
    FenceFreeFence,
    /// The fence before the second look at the wait word, after a waker has acted on a change.
    FenceAfterChange,
    /// The check between arming and sleeping.
    Recheck,
    /// Arming again after every return from the sleep.
    Rearm,
    /// The check of the position after the end was seen.
    CheckAfterEnd,
    /// Loading the peer's epoch again after the lock or the socket was seen gone.
    EpochAfterDeath,
    /// The check for a close after the lock was seen free.
    CloseBeforeDeath,
    /// The check for a successor after that.
    SuccessorBeforeDeath,
    /// The wake-up at attach and close, whatever the wait word says.
    Announce,
    /// `Release` of where a topic's last published message begins.
    PublishLast,
    /// The rule that the first frame noted in a part of a topic's data stays noted for the lap.
    StartOfLap,
    /// That a publisher claims before it writes, not after.
    Claim,
    /// The fence between a publisher's claim and its second load of the count of changes.
    ClaimFence,
    /// That second load.
    ChangesAgain,
    /// The fence between a subscriber's slot and its load of the claim.
    JoinFence,
    /// That load.
    JoinClaim,
    /// Counting a change at each choice of a cursor, not only at the first.
    BumpAgain,
    /// Ejecting a subscriber that blocks for too long.
    Eject,
    /// A subscriber's check whether it was ejected, after it has read.
    EjectedCheck,
    /// The check whether a message was overwritten, before its length is used.
    OvertakenFirst,
    /// The same check after the copy.
    OvertakenAgain,
    /// That a publisher overwrites everything but the last published message.
    KeepLast,
    /// That a publisher that attaches takes back the noted positions of frames that were never published.
    StartsAgain,
    /// That a blocked publisher loads the state of a slot before it asks for its lock.
    StateBeforeLock,
    /// That the epoch of a slot stays when its flags go.
    KeepEpoch,
    /// That the bit which keeps a cursor is the last thing that a join sets.
    DurableLast,
    /// Counting the wake-ups in the word that all subscribers share.
    CountWakeUps,
    /// That who waits for a shared RPC client looks and registers in one locked step.
    LookAndRegister,
    /// That who has received for others wakes one of them when it leaves.
    PassLead,
    /// That who was woken to receive for others, and no longer needs to, wakes another one.
    PassOn,
    /// The fence of a thread that tells an RPC server something.
    TellerFence,
    /// The fence of an RPC server that goes to sleep.
    ServerFence,
    /// That an RPC server which goes to sleep looks once more whether it was told something.
    NewsBeforeSleep,
    /// That an RPC server takes back the announcement before it takes what was announced.
    TakeNewsFirst,
}

/// The ordering of a step, or `Relaxed` where a model leaves it out.
#[inline(always)]
pub(crate) fn ordered(step: Step, ordering: Ordering) -> Ordering {
    if keep(step) { ordering } else { Ordering::Relaxed }
}
