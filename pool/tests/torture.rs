//! 64 threads that get, hand on, freeze and drop buffers of all sizes, while others clear, trim, warm and preallocate and
//! threads come and go. Every byte is counted: by the pool, by this test and by an allocator that keeps books.

mod support;

use bytes::Bytes;
use ramway_pool::{Buffer, BufferPool, UninitBuffer};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use support::ledger::{self, Ledger};
use support::{Random, fill, is_marked, mark, marked, rounds, within};

#[global_allocator]
static LEDGER: Ledger = Ledger;

const THREADS: usize = if cfg!(miri) { 3 } else { 64 };
/// Threads that follow each other in each of the 64 places.
const GENERATIONS: usize = if cfg!(miri) { 1 } else { 4 };
const STEPS: usize = if cfg!(miri) { 10 } else { 300 };
/// Most lengths are below two to this power.
const BITS: usize = if cfg!(miri) { 12 } else { 17 };
/// What a thread holds on to.
const HELD: usize = 12;

/// What is handed around, with its owner's mark.
enum Item {
    Buffer(Buffer, u64),
    Frozen(Bytes, u64),
    Vector(Vec<u8>, u64),
    /// Nobody may look into it.
    Uninit(UninitBuffer),
}

/// What the pool was asked for, to be compared with what it says.
#[derive(Default)]
struct Counts {
    gets: AtomicU64,
    /// Blocks that left the pool as vectors.
    left: AtomicU64,
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Item {
    fn check(&self) {
        let (bytes, owner): (&[u8], _) = match self {
            Item::Buffer(buffer, owner) => (buffer, *owner),
            Item::Frozen(bytes, owner) => (bytes, *owner),
            Item::Vector(vector, owner) => (vector, *owner),
            Item::Uninit(_) => return,
        };
        assert!(is_marked(bytes, owner), "somebody else wrote to {} bytes of {owner}", bytes.len());
    }
}

struct Worker<'a> {
    pool: &'a BufferPool,
    counts: &'a Counts,
    random: Random,
    held: Vec<Item>,
    to: Vec<Sender<Item>>,
    from: &'a mut Receiver<Item>,
    /// The next mark: nobody else has it.
    owner: u64,
}

impl Worker<'_> {
    fn len(&mut self) -> usize {
        // Now and then none at all, and now and then a long one.
        match self.random.below(100) {
            0 => 0,
            1 => self.random.below(32 << BITS),
            _ => self.random.size(BITS),
        }
    }

    fn get(&mut self) -> Item {
        let (len, owner) = (self.len(), self.owner);
        self.owner += 1;
        count(&self.counts.gets);
        match self.random.below(6) {
            0 => {
                let mut buffer = self.pool.get_zeroed(len);
                assert!(buffer.len() == len && is_marked(&buffer, 0), "not all zeros");
                mark(&mut buffer, owner);
                Item::Buffer(buffer, owner)
            }
            1 => {
                let mut bytes = vec![0; len];
                mark(&mut bytes, owner);
                Item::Buffer(self.pool.get_uninit(len).write_from_slice(&bytes), owner)
            }
            2 => Item::Uninit(self.pool.get_uninit(len)),
            3 => {
                count(&self.counts.left);
                let mut vector = self.pool.take();
                vector.resize(vector.capacity().min(100_000), 0);
                mark(&mut vector, owner);
                Item::Vector(vector, owner)
            }
            4 => {
                let mut buffer = self.pool.try_get(len).unwrap();
                fill(&mut buffer, owner);
                Item::Frozen(buffer.freeze(), owner)
            }
            _ => Item::Buffer(marked(self.pool, len, owner), owner),
        }
    }

    fn change(&mut self, item: Item) -> Item {
        item.check();
        match item {
            Item::Buffer(buffer, owner) => match self.random.below(3) {
                0 => Item::Frozen(buffer.freeze(), owner),
                1 => {
                    count(&self.counts.left);
                    Item::Vector(buffer.into_vec(), owner)
                }
                _ => Item::Buffer(buffer, owner),
            },
            Item::Frozen(bytes, owner) => {
                // Parts that begin with a whole mark, so that they can be checked as the whole.
                let from = self.random.below(bytes.len() / 8 + 1) * 8;
                let part = bytes.slice(from..);
                self.hand_on(Item::Frozen(bytes, owner));
                Item::Frozen(part, owner)
            }
            Item::Uninit(buffer) => {
                let owner = self.owner;
                self.owner += 1;
                let mut bytes = vec![0; buffer.len()];
                mark(&mut bytes, owner);
                Item::Buffer(buffer.write_from_slice(&bytes), owner)
            }
            other => other,
        }
    }

    fn hand_on(&mut self, item: Item) {
        let to = self.random.below(self.to.len());
        // A thread that has left takes nothing more: then the item is dropped here.
        let _ = self.to[to].send(item);
    }

    fn let_go(&mut self, item: Item) {
        item.check();
        match item {
            Item::Vector(vector, _) if self.random.below(4) > 0 => self.pool.put(vector),
            other => drop(other),
        }
    }

    fn step(&mut self) {
        while let Ok(item) = self.from.try_recv() {
            item.check();
            self.held.push(item);
        }
        if self.held.len() < HELD {
            let item = self.get();
            self.held.push(item);
        }
        while self.held.len() > HELD || self.random.below(3) == 0 && !self.held.is_empty() {
            let at = self.random.below(self.held.len());
            let item = self.held.swap_remove(at);
            match self.random.below(4) {
                0 => self.hand_on(item),
                1 => {
                    let item = self.change(item);
                    self.let_go(item);
                }
                2 => self.pool.put(vec![0; 2000 + at]),
                _ => self.let_go(item),
            }
        }
    }
}

/// What goes on beside: until the workers are done.
fn interfere(pool: &BufferPool, kind: usize, done: &AtomicBool) {
    let mut random = Random::new(kind as u64 + 1000);
    while !done.load(Ordering::Relaxed) {
        match kind {
            0 => _ = pool.clear(),
            1 => _ = pool.trim(random.below(8 << 20)),
            2 => _ = pool.warm(),
            3 => pool.preallocate(3, random.size(16)).unwrap(),
            _ => {
                let stats = pool.stats();
                assert_eq!(stats.held_bytes, stats.in_use_bytes + stats.idle_bytes, "{stats:?}");
                assert!(stats.peak_held_bytes >= stats.held_bytes, "{stats:?}");
                assert!(stats.hits <= stats.gets && stats.threads <= THREADS + 6, "{stats:?}");
            }
        }
        let pause = if cfg!(miri) { 200 } else { 1 + 2 * kind as u64 };
        std::thread::sleep(Duration::from_millis(pause));
    }
}

fn torture(pool: &BufferPool, threads: usize, steps: usize) {
    let counts = Counts::default();
    let done = AtomicBool::new(false);
    let (to, from): (Vec<_>, Vec<_>) = (0..threads).map(|_| channel::<Item>()).unzip();
    std::thread::scope(|scope| {
        for kind in 0..5 {
            let done = &done;
            scope.spawn(move || interfere(pool, kind, done));
        }
        let workers: Vec<_> = from
            .into_iter()
            .enumerate()
            .map(|(place, mut from)| {
                let (to, counts) = (to.clone(), &counts);
                scope.spawn(move || {
                    for generation in 0..GENERATIONS {
                        let owner = 1 + ((place * GENERATIONS + generation) as u64) * 0x1_0000_0001;
                        let random = Random::new(owner);
                        let to = to.clone();
                        let mut worker = Worker { pool, counts, random, held: vec![], to, from: &mut from, owner };
                        // A thread of its own, which ends with a full cache.
                        let run = move || {
                            (0..steps).for_each(|_| worker.step());
                            worker.held.iter().for_each(Item::check);
                            drop(worker);
                        };
                        std::thread::scope(|scope| scope.spawn(run).join().unwrap());
                    }
                    while let Ok(item) = from.try_recv() {
                        item.check();
                    }
                })
            })
            .collect();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        done.store(true, Ordering::Relaxed);
    });
    drop(to);

    let stats = pool.stats();
    assert_eq!(stats.in_use_bytes, 0, "{stats:?}");
    assert_eq!(stats.held_bytes, stats.idle_bytes, "{stats:?}");
    assert_eq!(stats.idle_buffers, pool.len());
    assert_eq!(stats.gets, counts.gets.load(Ordering::Relaxed), "{stats:?}");
    let caches = std::env::var_os("RAMWAY_MEMBARRIER").is_none_or(|value| value != "0");
    assert!(stats.hits > 0 || steps < 10 || !caches, "nobody found anything in a cache: {stats:?}");
    assert!(stats.adopted > 0 || steps < 10, "no vector was kept: {stats:?}");
    assert_eq!(pool.clear(), stats.idle_bytes);
    let stats = pool.stats();
    assert_eq!((stats.held_bytes, stats.idle_buffers, stats.threads), (0, 0, 0), "{stats:?}");
    let left = counts.left.load(Ordering::Relaxed);
    assert_eq!(stats.allocations + stats.adopted, stats.freed + left, "blocks came and went: {stats:?}, {left} left");
}

/// One test, because another one's allocations would be counted here.
#[test]
fn every_byte_of_64_threads_comes_back() {
    within(Duration::from_secs(120), || {
        // What the standard library and the pool set up once and keep.
        torture(&BufferPool::new(), THREADS / 8 + 1, STEPS / 10);
        let (bytes, blocks) = (ledger::live(), ledger::blocks());
        let pool = BufferPool::new();
        torture(&pool, THREADS, if cfg!(miri) { STEPS } else { rounds(STEPS) });
        drop(pool);
        assert_eq!(ledger::live(), bytes, "bytes that nobody gave back");
        // The books of 64 threads, and a little that the standard library may have grown meanwhile.
        assert!(ledger::blocks() <= blocks + 8, "{} blocks more than before", ledger::blocks() - blocks);
    });
}
