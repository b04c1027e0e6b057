//! What a survey's subscriber says of its policy. Here and not beside the rest of it: a survey knows nothing of what stands on
//! segments.

use super::place::Policy;
use crate::segment::survey::Subscriber;

impl Subscriber {
    /// How it reads.
    pub fn policy(&self) -> Policy {
        Policy::of_slot(self.gating || self.durable || self.ejected, self.latest)
    }
}
