//! One thread per process that finds out whether the peers of all named rings with a readiness descriptor live, and wakes
//! the descriptors of those that do not. (A killed process wakes nobody by itself.)
//!
//! A lock ends when the last descriptor of its file description is closed, however the process ended, and the kernel tells
//! of closes ([`Closes`]). So the thread asks, every 125 ms, only about the files that somebody has closed meanwhile, and about
//! all of them every two seconds, in case a system has such a notice but leaves some out: 1,000 idle handles cost 1.66 % of a
//! processor when each was asked about every 125 ms. That is still done where the notice is not to be had, and for sockets.
//! A process without descriptors pays nothing: the thread sleeps while there is nothing to check.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use super::helper::spawn;
use super::word::MappedWord;
use crate::endpoint::end::{End, Peer};
use crate::endpoint::word;
use crate::error::Result;
use crate::segment::Probe;
use crate::sync::fence;
use crate::sys::closes::{Closes, Watch};
use crate::sys::{fork, futex};

const PERIOD: Duration = Duration::from_millis(125);
/// A vanished name is rarer and less urgent than a death: checked in every eighth period.
const NAME_PERIODS: u32 = 8;
/// A handle whose file's closes are told of is checked so often without any.
const WATCHED_PERIODS: u32 = 16;
/// The kernel tells of a close right before it takes the lock away. So the check waits this long after it was told, and is
/// made once more in the next period, should the closing process not have run meanwhile.
const AFTER_CLOSE: Duration = Duration::from_millis(1);
const CHECKS_AFTER_CLOSE: u8 = 2;

/// The shared words of a ring's other role.
pub(crate) struct PeerWords {
    pub(crate) epoch: MappedWord,
    pub(crate) flags: MappedWord,
    /// The handle shares its own word with others, so that its value is not to be changed.
    pub(crate) shared: bool,
}

/// A handle whose peer, or name, is checked.
pub(crate) struct Entry {
    /// The word that the descriptor waits on.
    word: MappedWord,
    /// `None`: a region, of which only the name can go.
    peer: Option<PeerWords>,
    probe: Probe,
    died: Arc<AtomicBool>,
    /// The epoch of the peer whose death has been told: 0 for one that hung up before it attached.
    told: Option<u32>,
    told_name: bool,
    /// Tells when its file was closed by somebody; `None`: it is checked in every period.
    watch: Option<Watch>,
    /// In so many of the next periods it is checked, watched or not.
    due: u8,
}

impl Entry {
    pub(crate) fn new(word: MappedWord, peer: Option<PeerWords>, probe: Probe) -> Self {
        Self {
            word,
            peer,
            probe,
            died: Arc::new(AtomicBool::new(false)),
            told: None,
            told_name: false,
            watch: None,
            due: 0,
        }
    }

    /// One period: checks what is due.
    fn tick(&mut self, period: u32) {
        // A handle that was not seen to take a report is told again, see `check`. Relaxed: as there.
        let due = self.due > 0 || self.died.load(Ordering::Relaxed);
        self.due = self.due.saturating_sub(1);
        match self.watch {
            Some(_) if due || period.is_multiple_of(WATCHED_PERIODS) => self.check(true),
            Some(_) => {}
            None => self.check(period.is_multiple_of(NAME_PERIODS)),
        }
    }

    fn check(&mut self, name: bool) {
        let mut found = false;
        if let Some(peer) = &self.peer {
            // A peer that closes wakes this end itself. The name is asked for below, less often.
            let peer = Peer { epoch: &peer.epoch, flags: &peer.flags, is_final: self.probe.is_socket(), delivered: 0 };
            if let Some(End::Dead(epoch)) = peer.end(true, || false, || self.probe.peer_alive())
                && self.told != Some(epoch)
            {
                self.told = Some(epoch);
                found = true;
            }
        }
        if name && !self.told_name && self.probe.name_vanished() {
            self.told_name = true;
            found = true;
        }
        if found {
            // Relaxed, here and below: ordered by the fence.
            self.died.store(true, Ordering::Relaxed);
        }
        // Again in every period until the handle has taken the report: it may have been just about to submit.
        if self.died.load(Ordering::Relaxed) {
            // SeqCst: pairs with the handle's fence between arming and its load of `died`.
            fence(Ordering::SeqCst);
            if self.peer.as_ref().is_some_and(|peer| !peer.shared) {
                word::wake(&self.word);
            } else {
                // A region's word, or the one that a topic's subscribers share, is left as it is: its value counts, and
                // the wake-up is enough.
                futex::wake_all(&self.word);
            }
        }
    }
}

struct Registry {
    entries: Mutex<Entries>,
    more: Condvar,
}

#[derive(Default)]
struct Entries {
    list: Vec<Option<Entry>>,
    live: usize,
    running: bool,
    /// `None` where nothing tells of closes, or no handle was there to be told of.
    closes: Option<Closes>,
    /// The entries of each watched file: one, unless this process has several handles of a segment.
    watched: HashMap<Watch, Vec<usize>>,
}

impl Entries {
    /// Marks those whose files were closed by somebody; whether there is one.
    fn take_closes(&mut self) -> bool {
        let Self { list, closes: Some(closes), watched, .. } = self else { return false };
        let mut any = false;
        closes.take(|watch| {
            any = true;
            let mark = |entry: &mut Option<Entry>| {
                if let Some(entry) = entry {
                    entry.due = CHECKS_AFTER_CLOSE;
                }
            };
            match watch {
                Some(watch) => watched.get(&watch).into_iter().flatten().for_each(|&at| mark(&mut list[at])),
                None => list.iter_mut().for_each(mark),
            }
        });
        any
    }

    /// Has the entry's file watched, if that can be done.
    fn watch(&mut self, at: usize) {
        let Some(entry) = &mut self.list[at] else { return };
        // Whatever happened before it was watched.
        entry.due = CHECKS_AFTER_CLOSE;
        let Some(file) = entry.probe.named() else { return };
        if self.closes.is_none() {
            self.closes = Closes::new();
        }
        entry.watch = self.closes.as_ref().and_then(|closes| closes.watch(file));
        if let Some(watch) = entry.watch {
            self.watched.entry(watch).or_default().push(at);
        }
    }

    fn remove(&mut self, at: usize) {
        self.live -= 1;
        let Some(Entry { watch: Some(watch), .. }) = self.list[at].take() else { return };
        let Some(sharing) = self.watched.get_mut(&watch) else { return };
        sharing.retain(|&other| other != at);
        if sharing.is_empty() {
            self.watched.remove(&watch);
            if let Some(closes) = &self.closes {
                closes.forget(watch);
            }
        }
    }
}

/// Null in a new process and in a fork's child, where the parent's may be locked forever.
static REGISTRY: AtomicPtr<Registry> = AtomicPtr::new(std::ptr::null_mut());

fn registry() -> &'static Registry {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| fork::on_child(|| REGISTRY.store(std::ptr::null_mut(), Ordering::Relaxed)));
    // Acquire and Release: what is behind the pointer is made before it is seen.
    let mut at = REGISTRY.load(Ordering::Acquire);
    if at.is_null() {
        let new = Box::into_raw(Box::new(Registry { entries: Mutex::default(), more: Condvar::new() }));
        match REGISTRY.compare_exchange(at, new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => at = new,
            Err(other) => {
                // SAFETY: made above and never shared.
                drop(unsafe { Box::from_raw(new) });
                at = other;
            }
        }
    }
    // SAFETY: never freed once it was in `REGISTRY`.
    unsafe { &*at }
}

impl Registry {
    fn lock(&self) -> MutexGuard<'_, Entries> {
        // Nothing in here panics halfway through a change.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut period = 0u32;
        loop {
            let mut entries = self.lock();
            while entries.live == 0 {
                entries = self.more.wait(entries).unwrap_or_else(PoisonError::into_inner);
            }
            if entries.take_closes() {
                drop(entries);
                std::thread::sleep(AFTER_CLOSE);
                entries = self.lock();
            }
            for entry in entries.list.iter_mut().flatten() {
                entry.tick(period);
            }
            drop(entries);
            period = period.wrapping_add(1);
            std::thread::sleep(PERIOD);
        }
    }
}

/// A registration. Ends with [`Watched::unregister`], not with its drop: a fork's child must not touch the registry.
#[derive(Debug)]
pub(crate) struct Watched {
    at: Option<usize>,
    died: Arc<AtomicBool>,
}

impl Watched {
    pub(crate) fn nothing() -> Self {
        Self { at: None, died: Arc::default() }
    }

    /// Whether the checker found the peer dead or the name gone since the last call.
    pub(crate) fn take_died(&self) -> bool {
        // Relaxed: the caller has fenced since it armed. The swap only where there is something to take.
        self.died.load(Ordering::Relaxed) && self.died.swap(false, Ordering::Relaxed)
    }

    pub(crate) fn unregister(&mut self) {
        if let Some(at) = self.at.take() {
            registry().lock().remove(at);
        }
    }
}

/// Has the thread check an entry from now on.
pub(crate) fn register(entry: Entry) -> Result<Watched> {
    let registry = registry();
    let mut entries = registry.lock();
    if !entries.running {
        spawn("ramway-check", move || registry.run())?;
        entries.running = true;
    }
    let died = entry.died.clone();
    let at = match entries.list.iter().position(Option::is_none) {
        Some(free) => {
            entries.list[free] = Some(entry);
            free
        }
        None => {
            entries.list.push(Some(entry));
            entries.list.len() - 1
        }
    };
    entries.live += 1;
    entries.watch(at);
    registry.more.notify_one();
    Ok(Watched { at: Some(at), died })
}
