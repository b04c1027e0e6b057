//! Ramway's RPC: a client's calls of an inline handler.

use super::ring::policy;
use crate::Result;
use crate::case::{Burst, REQUEST, Test};
use crate::channel::{About, End, Kind, Mechanism, Prepared, Setup, fill, sum, verify};
use crate::control::Control;
use crate::loops::RoundTrips;
use ramway::ErrorKind;
use ramway::rpc::{CallOptions, Client, Pending, Server};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Calls whose replies are copied, or read in the ring.
pub(crate) struct Rpc {
    in_place: bool,
}

pub(crate) const COPIES: Rpc = Rpc { in_place: false };
pub(crate) const IN_PLACE: Rpc = Rpc { in_place: true };

/// The method that is called.
const METHOD: u32 = 1;

struct Caller {
    client: Client,
    in_place: bool,
}

struct Answering {
    server: Server,
    work: Arc<Work>,
}

/// What the handler does now. One thread uses it: the atomics only share it with the handler.
#[derive(Default)]
struct Work {
    /// Bytes of a reply.
    size: AtomicU64,
    /// Calls of this burst.
    count: AtomicU64,
    served: AtomicU64,
    total: AtomicU64,
}

impl Mechanism for Rpc {
    fn about(&self) -> About {
        if self.in_place {
            return About::new(
                "rpc-in-place",
                Kind::Ramway,
                false,
                "calls of an inline handler; the caller reads the reply in the ring",
            );
        }
        About::new("rpc", Kind::Ramway, true, "calls of an inline handler; the caller gets a copy of the reply")
    }

    fn can(&self, burst: &Burst) -> bool {
        burst.test == Test::Call && (burst.batch <= 1 || !self.in_place)
    }

    fn prepare(&self, setup: &Setup) -> Result<Prepared> {
        let path = setup.directory.join("rpc").to_str().ok_or("the directory is not UTF-8")?.to_owned();
        let (ticket, in_place) = (path.clone(), self.in_place);
        Ok(Prepared::new(ticket, move || {
            let client = Client::connect(&path)?;
            Ok(Box::new(Caller { client, in_place }) as Box<dyn End>)
        }))
    }

    fn join(&self, setup: &Setup, ticket: &str) -> Result<Box<dyn End>> {
        let mut server = Server::builder(ticket).capacity(setup.capacity).bind()?;
        let (work, stopper) = (Arc::new(Work::default()), server.stopper());
        let state = Arc::clone(&work);
        server.method(METHOD, move |request| {
            let n = state.served.load(Relaxed);
            state.total.store(state.total.load(Relaxed).wrapping_add(sum(request.body())), Relaxed);
            state.served.store(n + 1, Relaxed);
            if n + 1 == state.count.load(Relaxed) {
                stopper.interrupt();
            }
            let size = state.size.load(Relaxed) as usize;
            Ok(request.write_with(size, |bytes| {
                fill(bytes, n);
                size
            }))
        })?;
        // The client connects while this process comes to its first burst.
        while server.clients() == 0 {
            match server.run_timeout(std::time::Duration::from_millis(1)) {
                Err(error) if error.kind() == ErrorKind::TimedOut => {}
                outcome => outcome?,
            }
        }
        Ok(Box::new(Answering { server, work }))
    }
}

impl End for Caller {
    fn lead(&mut self, burst: &Burst, _control: &Control, samples: &mut Vec<u64>) -> Result<()> {
        self.client.set_wait_policy(policy(burst.mode));
        if burst.batch <= 1 { self.one_by_one(burst, samples) } else { self.together(burst, samples) }
    }

    fn follow(&mut self, _burst: &Burst, _control: &Control) -> Result<()> {
        Err("the calling side leads".into())
    }
}

impl Caller {
    #[inline(never)]
    fn one_by_one(&mut self, burst: &Burst, samples: &mut Vec<u64>) -> Result<()> {
        let Burst { size, count, .. } = *burst;
        let (mut request, mut total) = ([0; REQUEST], 0u64);
        let mut round_trips = RoundTrips::new(burst.group);
        for n in 0..count {
            fill(&mut request, n);
            let found = if self.in_place {
                self.client.call_in_place(METHOD, &request, &CallOptions::new(), |reply| sum(reply.body()))?
            } else {
                sum(self.client.call(METHOD, &request)?.body())
            };
            total = total.wrapping_add(found);
            round_trips.passed(samples);
        }
        verify(total, size, count)
    }

    #[inline(never)]
    fn together(&mut self, burst: &Burst, samples: &mut Vec<u64>) -> Result<()> {
        let Burst { size, count, batch, .. } = *burst;
        let (mut request, mut total, mut next) = ([0; REQUEST], 0u64, 0);
        let mut under_way: VecDeque<Pending> = VecDeque::with_capacity(batch as usize);
        let mut round_trips = RoundTrips::new(burst.group);
        for _ in 0..count {
            while next < count && under_way.len() < batch as usize {
                fill(&mut request, next);
                under_way.push_back(self.client.start(METHOD, &request)?);
                next += 1;
            }
            let reply = under_way.pop_front().ok_or("a call is under way")?.wait(&mut self.client)?;
            total = total.wrapping_add(sum(reply.body()));
            round_trips.passed(samples);
        }
        verify(total, size, count)
    }
}

impl End for Answering {
    fn lead(&mut self, _burst: &Burst, _control: &Control, _samples: &mut Vec<u64>) -> Result<()> {
        Err("the calling side leads".into())
    }

    fn follow(&mut self, burst: &Burst, _control: &Control) -> Result<()> {
        self.server.set_wait_policy(policy(burst.mode));
        let Work { size, count, served, total } = &*self.work;
        size.store(burst.size as u64, Relaxed);
        count.store(burst.count, Relaxed);
        served.store(0, Relaxed);
        total.store(0, Relaxed);
        match self.server.run() {
            Err(error) if error.kind() == ErrorKind::Interrupted => verify(total.load(Relaxed), REQUEST, burst.count),
            Err(error) => Err(error.into()),
            Ok(()) => Err("the server was shut down".into()),
        }
    }
}
