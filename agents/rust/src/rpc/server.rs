//! A server with the agents' methods, on a thread of its own, and its commands.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use ramway::rpc::{Call, Fault, Request, Server, Stopper};
use ramway::{ErrorKind, Result};

use super::{SUM, bytes, read, words};
use crate::Stop;
use crate::ends::Ends;
use crate::line::Line;

/// A server at work.
pub(crate) struct Serving {
    stopper: Stopper,
    seen: Arc<Seen>,
    held: Arc<Mutex<Held>>,
    /// Asks the server's thread how many clients there are, and has the answer.
    clients: (Sender<()>, Receiver<usize>),
    thread: Option<JoinHandle<Result<()>>>,
}

/// What the handlers have seen.
#[derive(Default)]
struct Seen {
    began: AtomicU64,
    ended: AtomicU64,
    cancelled: AtomicU64,
    elements: AtomicU64,
}

/// A handler that runs, until this is dropped.
struct Running(Arc<Seen>);

impl Running {
    fn begin(seen: &Arc<Seen>) -> Self {
        seen.began.fetch_add(1, Ordering::Relaxed);
        Self(seen.clone())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::Relaxed);
    }
}

/// The calls of method 5.
#[derive(Default)]
struct Held {
    open: bool,
    next: u64,
    calls: HashMap<u64, (Call, Running)>,
}

/// Elements of method 4.
struct Elements {
    running: Running,
    seq: u64,
    size: usize,
    count: u64,
    code: u32,
    sent: u64,
    ended: bool,
}

pub(crate) fn open(ends: &mut Ends, name: &str, mut line: Line) -> std::result::Result<(), Stop> {
    let capacity: u64 = line.get("capacity", 65536)?;
    let mut builder = Server::builder(name).capacity(capacity).align(line.get("align", 16)?).wait_policy(line.wait()?);
    if let Some(count) = line.maybe("max_clients")? {
        builder = builder.max_clients(count);
    }
    if let Some(calls) = line.maybe("max_in_flight")? {
        builder = builder.max_in_flight(calls);
    }
    if let Some(bytes) = line.maybe("max_bytes")? {
        builder = builder.max_bytes(bytes);
    }
    let bare = line.yes("bare");
    line.end()?;
    let (seen, held) = (Arc::<Seen>::default(), Arc::<Mutex<Held>>::default());
    let mut server = builder.bind()?;
    if bare {
        server.method(1, |request| Ok(request.write(request.body())))?;
    } else {
        methods(&mut server, &seen, &held)?;
    }
    let stopper = server.stopper();
    let (ask, asked) = channel::<()>();
    let (answer, clients) = channel();
    let thread = std::thread::spawn(move || {
        loop {
            match server.run() {
                // To be asked.
                Err(cause) if cause.kind() == ErrorKind::Interrupted => {
                    for () in asked.try_iter() {
                        // Nobody listens any more at the end only.
                        let _ = answer.send(server.clients());
                    }
                }
                ended => return ended,
            }
        }
    });
    ends.server = Some(Serving { stopper, seen, held, clients: (ask, clients), thread: Some(thread) });
    println!("attached pid={} capacity={capacity}", std::process::id());
    Ok(())
}

fn methods(server: &mut Server, seen: &Arc<Seen>, held: &Arc<Mutex<Held>>) -> Result<()> {
    let begin = || {
        let seen = seen.clone();
        move || Running::begin(&seen)
    };
    let begins = begin();
    server.method(1, move |request| {
        let _running = begins();
        request.set_reply_meta(request.meta());
        Ok(request.write(request.body()))
    })?;
    let begins = begin();
    server.method(2, move |request| {
        let _running = begins();
        let [seq, len] = asked(request)?;
        Ok(request.write_with(len as usize, |to| {
            to.copy_from_slice(&bytes(u64::from(seq), len as usize));
            len as usize
        }))
    })?;
    let begins = begin();
    server.method(3, move |request| -> std::result::Result<(), Fault> {
        let _running = begins();
        let (code, text) = request.body().split_first_chunk::<4>().ok_or_else(short)?;
        Err(Fault::new(u32::from_le_bytes(*code), String::from_utf8_lossy(text)))
    })?;
    let begins = begin();
    server.pool_stream(4, move |request| {
        let running = begins();
        let [count, size, code, seq] = asked(request)?;
        let (seq, size, count) = (u64::from(seq), size as usize, u64::from(count));
        Ok(Elements { running, seq, size, count, code, sent: 0, ended: false })
    })?;
    let (begins, held) = (begin(), held.clone());
    server.deferred(5, move |call| hold(&held, call, begins()))?;
    let begins = begin();
    server.method(6, move |_| -> std::result::Result<(), Fault> {
        let _running = begins();
        panic!("method 6")
    })?;
    let begins = begin();
    server.method(7, move |request| {
        let _running = begins();
        let left = request.remaining().map_or(0, |left| left.as_micros().div_ceil(1000));
        Ok(words([request.peer().pid.unwrap_or(0), left.try_into().unwrap_or(u32::MAX)]))
    })?;
    let begins = begin();
    server.method(SUM, move |request| {
        let _running = begins();
        Ok(words([crc32fast::hash(request.body())]))
    })
}

fn short() -> Fault {
    Fault::new(0, "the request is no request of this method")
}

fn asked<const N: usize>(request: &Request<'_>) -> std::result::Result<[u32; N], Fault> {
    read(request.body()).ok_or_else(short)
}

fn lock(held: &Mutex<Held>) -> MutexGuard<'_, Held> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Replies once the gate is open; a call that is cancelled ends at once.
fn hold(held: &Arc<Mutex<Held>>, call: Call, running: Running) {
    let cancellation = call.cancellation();
    let number = {
        let mut list = lock(held);
        if list.open {
            drop(list);
            return echo(call, running);
        }
        list.next += 1;
        let number = list.next;
        list.calls.insert(number, (call, running));
        number
    };
    let held = held.clone();
    cancellation.on_cancel(move || {
        let call = lock(&held).calls.remove(&number);
        if let Some((_call, running)) = call {
            running.0.cancelled.fetch_add(1, Ordering::Relaxed);
        }
    });
}

fn echo(mut call: Call, running: Running) {
    let meta = call.meta().to_vec();
    call.set_reply_meta(&meta);
    let body = call.body().to_vec();
    drop(running);
    call.reply(body);
}

impl Iterator for Elements {
    type Item = std::result::Result<Vec<u8>, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.sent < self.count {
            self.sent += 1;
            self.running.0.elements.fetch_add(1, Ordering::Relaxed);
            return Some(Ok(bytes(self.seq + self.sent - 1, self.size)));
        }
        self.ended = true;
        (self.code != 0).then(|| Err(Fault::new(self.code, format!("after {}", self.count))))
    }
}

impl Drop for Elements {
    fn drop(&mut self) {
        if !self.ended {
            self.running.0.cancelled.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Serving {
    pub(crate) fn obey(&mut self, mut line: Line) -> std::result::Result<(), Stop> {
        match line.word.as_str() {
            "served" => {
                line.end()?;
                let clients = self.count_clients();
                let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
                let Seen { began, ended, cancelled, elements } = &*self.seen;
                // First those that have ended: so no more have ended than have begun.
                let (ended, began) = (of(ended), of(began));
                let (cancelled, elements) = (of(cancelled), of(elements));
                let running = began - ended;
                println!(
                    "served began={began} running={running} cancelled={cancelled} elements={elements} clients={clients}"
                );
            }
            "gate" => {
                line.end()?;
                let calls = {
                    let mut held = lock(&self.held);
                    held.open = true;
                    std::mem::take(&mut held.calls)
                };
                calls.into_values().for_each(|(call, running)| echo(call, running));
                println!("opened");
            }
            "shutdown" => {
                let limit = Duration::from_millis(line.need("limit")?);
                line.end()?;
                self.stopper.shutdown(limit);
                println!("draining");
            }
            "join" => {
                line.end()?;
                self.join()?;
                println!("ended");
            }
            _ => return Err(Stop::Refused(format!("{} is no command of a server", std::mem::take(&mut line.word)))),
        }
        Ok(())
    }

    fn count_clients(&self) -> usize {
        let (ask, clients) = &self.clients;
        let asked = ask.send(()).is_ok();
        self.stopper.interrupt();
        // A server that has ended has none.
        if asked { clients.recv().unwrap_or(0) } else { 0 }
    }

    fn join(&mut self) -> Result<()> {
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(ended)) => ended,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Ok(()),
        }
    }

    pub(crate) fn close(mut self) -> Result<()> {
        self.stopper.shutdown(Duration::ZERO);
        self.join()
    }
}
