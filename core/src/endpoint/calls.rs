//! The calls that a sender and a receiver share: each stands on the endpoint, or on what both know of their ring.

/// Gives an end its shared calls. `$me` is the end, `$peer` the other one; the texts in front of `readiness` and
/// `wait_for_peer` say what these two are for this end.
macro_rules! endpoint_calls {
    (
        $end:ident, $me:literal, $peer:literal;
        $(#[$readiness:meta])* readiness;
        $(#[$wait_for_peer:meta])* wait_for_peer;
    ) => {
        impl<L: crate::ring::log::Log> $end<L> {
            /// Bytes of the data area; a frame takes 16 bytes more than its payload, rounded up to [`align`](Self::align).
            pub fn capacity(&self) -> usize {
                self.half.hot.capacity as usize
            }

            /// Every payload begins on a multiple of this many bytes.
            pub fn align(&self) -> usize {
                self.half.hot.align as usize
            }

            #[doc = concat!("Whether a ", $peer, " is attached and its process lives (one system call). A stopped process is alive.")]
            pub fn is_peer_alive(&self) -> bool {
                self.half.endpoint.is_peer_alive()
            }

            #[doc = concat!("How often a ", $peer, " has attached; 0 = never yet. A change means that a successor took over.")]
            pub fn peer_epoch(&self) -> u32 {
                self.half.endpoint.peer_epoch()
            }

            #[doc = concat!("How often a ", $me, " has attached, this one included; 1 = the first.")]
            pub fn epoch(&self) -> u32 {
                self.half.endpoint.epoch()
            }

            /// The name that the ring was opened by, or the bus; `None` of a pair or a ring from a descriptor.
            pub fn name(&self) -> Option<&std::ffi::OsStr> {
                self.half.endpoint.name()
            }

            /// How this handle's blocking calls wait from now on.
            pub fn set_wait_policy(&mut self, policy: crate::WaitPolicy) {
                self.half.endpoint.waiting.policy = policy;
            }

            /// Whether a blocking call returns `Interrupted` after a signal handler ran (default: it goes on waiting). For
            /// runtimes that act on signals outside their handlers.
            pub fn set_interruptible(&mut self, yes: bool) {
                self.half.endpoint.waiting.interruptible = yes;
            }

            $(#[$readiness])*
            pub fn readiness(&mut self) -> crate::Result<&crate::Readiness> {
                self.half.check()?;
                self.half.endpoint.readiness()
            }

            $(#[$wait_for_peer])*
            pub fn wait_for_peer(&mut self) -> crate::Result<u32> {
                self.half.wait_for_peer(crate::wait::WaitLimit::Forever)
            }

            /// [`wait_for_peer`](Self::wait_for_peer) for at most `timeout`, then `TimedOut`.
            pub fn wait_for_peer_timeout(&mut self, timeout: std::time::Duration) -> crate::Result<u32> {
                self.half.wait_for_peer(crate::wait::WaitLimit::For(timeout))
            }

            /// What ends this handle's waits from another thread.
            pub fn waker(&self) -> crate::Waker {
                self.half.endpoint.waker()
            }
        }

        // SAFETY: the raw pointers lead into mappings that the attachment owns and that have no thread affinity; every
        // method that touches private state takes `&mut self`.
        unsafe impl<L: crate::ring::log::Log> Send for $end<L> {}

        impl<L: crate::ring::log::Log> std::fmt::Debug for $end<L> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($end))
                    .field("capacity", &self.capacity())
                    .field("len", &self.len())
                    .field("epoch", &self.epoch())
                    .field("peer_epoch", &self.peer_epoch())
                    .finish_non_exhaustive()
            }
        }
    };
}

pub(crate) use endpoint_calls;
