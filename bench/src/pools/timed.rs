//! A row's loop for somebody else's clockwork: another benchmark harness that says how often, and wants to know how long.

use crate::Result;
use crate::case::Burst;
use crate::channel::{End, Mechanism, Setup};
use crate::control::Control;
use crate::machine::allowed;
use crate::{clock, mechanism};
use std::path::PathBuf;
use std::time::Duration;

/// Pools that this crate has.
pub fn built_in() -> Vec<&'static dyn Mechanism> {
    mechanism::ALL.iter().copied().filter(|one| mechanism::POOLS.contains(&one.about().name.as_str())).collect()
}

/// A pool, ready for one kind of burst, in this process.
pub struct Timed {
    end: Box<dyn End>,
    control: Control,
    burst: Burst,
}

impl Timed {
    /// `None` if it cannot do this burst.
    ///
    /// # Errors
    /// The pool cannot be opened.
    pub fn new(mechanism: &dyn Mechanism, burst: Burst) -> Result<Option<Self>> {
        if !burst.test.is_pool() || !mechanism.can(&burst) {
            return Ok(None);
        }
        let allowed = allowed();
        let none = PathBuf::new();
        let setup = Setup {
            directory: none.clone(),
            disk: none,
            capacity: 0,
            largest: burst.size,
            cpus: [allowed.first().copied(), allowed.get(1).copied()],
            realtime: false,
        };
        let end = (mechanism.prepare(&setup)?.finish)()?;
        Ok(Some(Self { end, control: Control::new()?, burst }))
    }

    /// `count` operations, of all threads together.
    ///
    /// # Errors
    /// What fails a row.
    pub fn run(&mut self, count: u64) -> Result<Duration> {
        // Pieces that threads share, of no more than a few hundred.
        let group = (count / 256).clamp(1, u64::from(u32::MAX)) as u32;
        let burst = Burst { count, group, ..self.burst };
        self.end.lead(&burst, &self.control, &mut Vec::with_capacity(1024))?;
        self.control.ratios();
        Ok(Duration::from_nanos((clock::ps(self.control.elapsed()) / 1000.0) as u64))
    }
}
