//! A region's `notify` and `wait`, which carry no bytes.

use crate::Result;
use crate::channel::{Burst, End, Mechanism, Prepared};
use crate::clock;
use crate::control::Control;
use crate::plan::Test;
use ramway::{Region, RegionBuilder, WaitPolicy};

pub(crate) struct Notification;

/// One region each way, because everybody who waits on a region is told.
struct Regions {
    there: Region,
    back: Region,
}

const LENGTH: u64 = 64;

/// Its rows are those of `block`.
fn sleeping() -> RegionBuilder {
    Region::builder().wait_policy(WaitPolicy::Block)
}

impl Mechanism for Notification {
    fn name(&self) -> &'static str {
        "region"
    }

    fn prepare(&self, directory: &str, _capacity: u64) -> Result<Prepared> {
        let there = sleeping().create(format!("{directory}/there"), LENGTH)?;
        let back = sleeping().create(format!("{directory}/back"), LENGTH)?;
        let finish = Box::new(move || Ok(Box::new(Regions { there, back }) as Box<dyn End>));
        Ok(Prepared { ticket: directory.to_owned(), inherit: vec![], finish })
    }

    fn join(&self, ticket: &str) -> Result<Box<dyn End>> {
        let there = sleeping().open(format!("{ticket}/there"))?;
        let back = sleeping().open(format!("{ticket}/back"))?;
        Ok(Box::new(Regions { there, back }))
    }
}

impl End for Regions {
    fn lead(&mut self, burst: &Burst, control: &Control, ticks: &mut Vec<u64>) -> Result<()> {
        let mut last = clock::now();
        for n in 0..burst.count {
            if burst.test == Test::Wake {
                control.let_sleep(n + 1)?;
                self.there.notify()?;
            } else {
                self.there.notify()?;
                self.back.wait(None)?;
                let now = clock::now();
                ticks.push(now - last);
                last = now;
            }
        }
        Ok(())
    }

    fn follow(&mut self, burst: &Burst, control: &Control) -> Result<()> {
        for n in 0..burst.count {
            if burst.test == Test::Wake {
                control.arm(n + 1);
                self.there.wait(None)?;
                control.woken();
            } else {
                self.there.wait(None)?;
                self.back.notify()?;
            }
        }
        Ok(())
    }
}
