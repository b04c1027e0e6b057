//! How an end of a ring is used, wherever its ring comes from.

use super::{Receiver, Sender};
use crate::error::Result;
use crate::segment::{Attachment, Role};
use crate::sys::mem::Access;
use crate::wait::WaitPolicy;

/// The options that the ends of rings and buses share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndOptions {
    pub(crate) policy: WaitPolicy,
    pub(crate) membarrier: bool,
    /// For languages whose views of a received message cannot be read-only.
    pub(crate) writable_views: bool,
}

impl Default for EndOptions {
    fn default() -> Self {
        Self { policy: WaitPolicy::default(), membarrier: true, writable_views: false }
    }
}

impl EndOptions {
    /// How this end maps the data.
    pub(crate) fn access(&self, role: Role) -> Access {
        if self.writable_views { Access::ReadWrite } else { role.data_access() }
    }

    pub(crate) fn sender(&self, attachment: Attachment) -> Result<Sender> {
        Sender::attach(attachment, self.policy, self.membarrier)
    }

    pub(crate) fn receiver(&self, attachment: Attachment) -> Result<Receiver> {
        Receiver::attach(attachment, self.policy, self.membarrier)
    }
}

/// The methods of a builder that set its [`EndOptions`], the field `end`.
macro_rules! end_options {
    () => {
        /// How blocking calls of each end wait. Default [`WaitPolicy::Hybrid`](crate::WaitPolicy::Hybrid).
        pub fn wait_policy(mut self, policy: crate::WaitPolicy) -> Self {
            self.end.policy = policy;
            self
        }

        /// Whether this process may use `membarrier(2)` where the kernel has it (the default): it takes a fence off every
        /// message of both sides. Registering it takes up to 12 ms, once per process.
        pub fn membarrier(mut self, yes: bool) -> Self {
            self.end.membarrier = yes;
            self
        }

        /// For languages whose views of a received message cannot be read-only.
        #[doc(hidden)]
        pub fn writable_views(mut self, yes: bool) -> Self {
            self.end.writable_views = yes;
            self
        }
    };
}
pub(crate) use end_options;
