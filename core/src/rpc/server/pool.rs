//! The threads of a server's pool, and the order in which they take work: the clients one after another, and of one client at most
//! half of the threads as long as others wait. What waits is bounded by what each client may have in flight.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::call::Call;
use super::hub::{Event, Happened, Hub};
use super::ledger::Reply;
use super::methods::{PoolBegins, Pooled};
use super::request::Request;
use super::streams::{Elements, Step, guarded, step};
use crate::rpc::Status;
use crate::sys::fork;

/// What a thread does.
pub(super) enum Work {
    Call(Call, Arc<Pooled>),
    Begin(Call, Arc<PoolBegins>),
    /// The next element of a stream of a call.
    Pull(u64, Box<dyn Elements>),
}

/// The threads, of which none is started before there is work.
pub(super) struct Pool {
    shared: Arc<Shared>,
    generation: u32,
}

struct Shared {
    hub: Arc<Hub>,
    state: Mutex<State>,
    work: Condvar,
}

struct State {
    /// At most so many threads.
    max: usize,
    threads: usize,
    idle: usize,
    queues: Queues<Work>,
    stops: bool,
}

/// What waits, by client.
struct Queues<W> {
    by_client: HashMap<u64, Queue<W>>,
    /// Clients with work that waits; the one that is served goes last.
    order: VecDeque<u64>,
    last_ticket: u64,
}

struct Queue<W> {
    /// By its number.
    waits: BTreeMap<u64, W>,
    runs: usize,
}

impl<W> Queues<W> {
    fn new() -> Self {
        Self { by_client: HashMap::new(), order: VecDeque::new(), last_ticket: 0 }
    }

    fn push(&mut self, client: u64, work: W) -> u64 {
        self.last_ticket += 1;
        let queue = self.by_client.entry(client).or_insert_with(|| Queue { waits: BTreeMap::new(), runs: 0 });
        if queue.waits.is_empty() {
            self.order.push_back(client);
        }
        queue.waits.insert(self.last_ticket, work);
        self.last_ticket
    }

    /// What is to run next of all that waits, where there are so many threads.
    fn pop(&mut self, threads: usize) -> Option<(u64, W)> {
        let half = threads.div_ceil(2);
        let below = |client: &u64| self.by_client.get(client).is_some_and(|queue| queue.runs < half);
        // If all that wait have their half, the threads that are left may go to any of them.
        let at = self.order.iter().position(below).unwrap_or(0);
        let client = self.order.remove(at)?;
        let queue = self.by_client.get_mut(&client)?;
        let (_, work) = queue.waits.pop_first()?;
        queue.runs += 1;
        if !queue.waits.is_empty() {
            self.order.push_back(client);
        }
        Some((client, work))
    }

    fn ended(&mut self, client: u64) {
        if let Some(queue) = self.by_client.get_mut(&client) {
            queue.runs -= 1;
            self.forget_if_empty(client);
        }
    }

    /// Takes back what has not begun.
    fn withdraw(&mut self, client: u64, ticket: u64) -> Option<W> {
        let queue = self.by_client.get_mut(&client)?;
        let work = queue.waits.remove(&ticket)?;
        if queue.waits.is_empty() {
            self.order.retain(|other| *other != client);
            self.forget_if_empty(client);
        }
        Some(work)
    }

    /// Takes all of a client's back that has not begun.
    fn withdraw_all(&mut self, client: u64) -> BTreeMap<u64, W> {
        let Some(queue) = self.by_client.get_mut(&client) else { return BTreeMap::new() };
        let waits = std::mem::take(&mut queue.waits);
        self.order.retain(|other| *other != client);
        self.forget_if_empty(client);
        waits
    }

    fn forget_if_empty(&mut self, client: u64) {
        if self.by_client.get(&client).is_some_and(|queue| queue.runs == 0 && queue.waits.is_empty()) {
            self.by_client.remove(&client);
        }
    }
}

impl Pool {
    pub(super) fn new(hub: Arc<Hub>, max: usize) -> Self {
        let state = State { max, threads: 0, idle: 0, queues: Queues::new(), stops: false };
        let shared = Shared { hub, state: Mutex::new(state), work: Condvar::new() };
        Self { shared: Arc::new(shared), generation: fork::generation() }
    }

    /// Has a thread do this. Gives its number; `None`: there is no thread, and none could be started.
    pub(super) fn push(&self, client: u64, work: Work) -> Option<u64> {
        let mut state = self.shared.lock();
        if state.idle == 0 && state.threads < state.max {
            let shared = self.shared.clone();
            let thread = std::thread::Builder::new().name("ramway-rpc".into());
            if thread.spawn(move || shared.work()).is_ok() {
                state.threads += 1;
            } else if state.threads == 0 {
                drop(state);
                // Its call is answered by its caller.
                work.forget();
                return None;
            }
        }
        let ticket = state.queues.push(client, work);
        drop(state);
        self.shared.work.notify_one();
        Some(ticket)
    }

    /// Takes work back that has not begun; false if it has.
    pub(super) fn withdraw(&self, client: u64, ticket: u64) -> bool {
        let work = self.shared.lock().queues.withdraw(client, ticket);
        work.map(Work::forget).is_some()
    }

    /// Takes all work of a client back that has not begun.
    pub(super) fn forget(&self, client: u64) {
        let waits = self.shared.lock().queues.withdraw_all(client);
        waits.into_values().for_each(Work::forget);
    }
}

impl Drop for Pool {
    /// Threads that run a handler end with it.
    fn drop(&mut self) {
        // In a fork's child there are no threads, and one of them may have held the lock.
        if self.generation == fork::generation() {
            self.shared.lock().stops = true;
            self.shared.work.notify_all();
        }
    }
}

impl Work {
    /// Drops it without an answer of its own.
    fn forget(self) {
        if let Self::Call(mut call, _) | Self::Begin(mut call, _) = self {
            call.answered = true;
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No handler runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut state = self.lock();
        while !state.stops {
            let max = state.max;
            if let Some((client, work)) = state.queues.pop(max) {
                drop(state);
                self.run(client, work);
                state = self.lock();
                state.queues.ended(client);
            } else {
                state.idle += 1;
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.idle -= 1;
            }
        }
    }

    fn run(&self, client: u64, work: Work) {
        match work {
            Work::Call(call, _) | Work::Begin(call, _) if call.deadline.is_some_and(|at| at <= Instant::now()) => {
                answer(call, Reply::of(Status::TimedOut));
            }
            Work::Call(call, handler) => {
                let reply = guarded(|| {
                    let mut request = call.request();
                    let outcome = handler(&mut request);
                    request.output.into_reply(outcome)
                });
                answer(call, reply.unwrap_or_else(|failed| failed));
            }
            Work::Begin(mut call, handler) => {
                let begun = guarded(|| {
                    let request: Request<'_> = call.request();
                    handler(&request)
                });
                match begun {
                    Ok(Ok(elements)) => {
                        call.answered = true;
                        self.pull(client, call.id, elements);
                    }
                    Ok(Err(fault)) => answer(call, Reply::fault(fault, Vec::new())),
                    Err(failed) => answer(call, failed),
                }
            }
            Work::Pull(call, elements) => self.pull(client, call, elements),
        }
    }

    fn pull(&self, client: u64, call: u64, mut elements: Box<dyn Elements>) {
        let mut element = None;
        let step = step(&mut *elements, &mut |bytes| element = Some(Reply::ok(Vec::new(), bytes.to_vec())));
        let happened = match (step, element) {
            (Step::Element, Some(element)) => Happened::Pulled(elements, element),
            (Step::Failed(reply), _) => Happened::Reply(reply),
            (Step::Complete | Step::Element, _) => Happened::Complete,
        };
        self.hub.push(Event { client, call, happened });
    }
}

fn answer(mut call: Call, reply: Reply) {
    call.answer(Happened::Reply(reply));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is popped while nothing ends.
    fn order(queues: &mut Queues<u32>, threads: usize) -> Vec<u64> {
        (0..threads).map_while(|_| queues.pop(threads)).map(|(client, _)| client).collect()
    }

    #[test]
    fn a_client_alone_has_all_threads() {
        let mut queues = Queues::new();
        for n in 0..10 {
            queues.push(1, n);
        }
        assert_eq!(order(&mut queues, 4), [1, 1, 1, 1]);
    }

    #[test]
    fn a_client_has_half_of_the_threads_while_others_wait() {
        let mut queues = Queues::new();
        for n in 0..10 {
            queues.push(1, n);
        }
        for n in 0..10 {
            queues.push(2, n);
        }
        assert_eq!(order(&mut queues, 5), [1, 2, 1, 2, 1]);
        // One of each ends: it is the other one's turn to have three.
        queues.ended(1);
        assert_eq!(queues.pop(5).unwrap().0, 2);
        queues.ended(2);
        queues.push(3, 0);
        assert_eq!(queues.pop(5).unwrap().0, 1);
        queues.ended(2);
        // Client 1 has its half: the one that came last is before it.
        assert_eq!(queues.pop(5).unwrap().0, 2);
        queues.ended(2);
        assert_eq!(queues.pop(5).unwrap().0, 3);
    }

    #[test]
    fn what_was_withdrawn_does_not_run_and_leaves_nothing() {
        let mut queues = Queues::new();
        let first = queues.push(1, 1);
        let second = queues.push(1, 2);
        assert_eq!(queues.withdraw(1, second), Some(2));
        assert_eq!(queues.withdraw(1, second), None);
        assert_eq!(queues.pop(2), Some((1, 1)));
        assert_eq!(queues.withdraw(1, first), None);
        assert_eq!(queues.pop(2), None);
        queues.ended(1);
        for n in 0..5 {
            queues.push(7, n);
        }
        assert_eq!(queues.withdraw_all(7).len(), 5);
        assert!(queues.by_client.is_empty() && queues.order.is_empty());
    }
}
