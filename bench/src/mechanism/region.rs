//! A region's `notify` and `wait`, which carry no bytes.

use super::futex::can_signal;
use crate::Result;
use crate::case::{Burst, Mode};
use crate::channel::{About, Channel, End, Kind, Mechanism, Prepared, Setup};
use ramway::{Region, WaitPolicy};
use std::path::Path;

pub(crate) struct Notification;

/// One region each way, because everybody who waits on a region is told.
struct Regions {
    mine: Region,
    /// A handle's policy is for its life: one of each.
    theirs: [Region; 3],
    policy: usize,
    /// How many notifications were taken, as the region counts them.
    seen: u32,
}

const LENGTH: u64 = 64;
/// What a notification adds to the count, by the format.
const STEP: u32 = 2;
const POLICIES: [WaitPolicy; 3] = [WaitPolicy::Spin, WaitPolicy::Hybrid, WaitPolicy::Block];

fn end(setup: &Setup, mine: &str, theirs: &str, make: impl Fn(&Path) -> ramway::Result<Region>) -> Result<Regions> {
    let (mine, theirs) = (setup.directory.join(mine), setup.directory.join(theirs));
    let mine = make(&mine)?;
    let keep = make(&theirs)?;
    let open = |policy: WaitPolicy| Region::builder().wait_policy(policy).open(&theirs);
    let theirs = [open(POLICIES[0])?, open(POLICIES[1])?, open(POLICIES[2])?];
    let seen = keep.notifications()?;
    Ok(Regions { mine, theirs, policy: 2, seen })
}

impl Mechanism for Notification {
    fn about(&self) -> About {
        About::new("region", Kind::Ramway, false, "notify and wait of a region, which carry no bytes")
    }

    fn can(&self, burst: &Burst) -> bool {
        can_signal(&Burst { mode: Mode::Block, ..*burst }) && burst.mode != Mode::Each && burst.mode != Mode::Batch
    }

    fn prepare(&self, setup: &Setup) -> Result<Prepared> {
        let regions = end(setup, "there", "back", |path| Region::create(path, LENGTH))?;
        Ok(Prepared::new("", move || Ok(Box::new(regions) as Box<dyn End>)))
    }

    fn join(&self, setup: &Setup, _ticket: &str) -> Result<Box<dyn End>> {
        Ok(Box::new(end(setup, "back", "there", |path| Region::open(path))?))
    }
}

impl Channel for Regions {
    fn configure(&mut self, mode: Mode) -> Result<()> {
        self.policy = match mode {
            Mode::Spin => 0,
            Mode::Hybrid => 1,
            _ => 2,
        };
        Ok(())
    }

    #[inline(always)]
    fn send(&mut self, _size: usize, _flush: bool, _fill: impl FnOnce(&mut [u8])) -> Result<()> {
        Ok(self.mine.notify()?)
    }

    #[inline(always)]
    fn receive(&mut self, _size: usize, _max: u32, _read: impl FnMut(&[u8])) -> Result<u32> {
        self.theirs[self.policy].wait_since(self.seen, None)?;
        // One of them, should there be more.
        self.seen = self.seen.wrapping_add(STEP);
        Ok(1)
    }
}
