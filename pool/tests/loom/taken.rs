//! A thread uses its cache while others take it away.

use crate::world::{Fence, World};
use crate::{LOST, RACE, fails_without, holds};
use ramway_pool::model::Step;

/// The owner uses its one block `uses` times while somebody takes the cache, writes to what it held and gives it back.
fn taken_and_given_back(uses: u32, fence: Fence) {
    let world = World::new(1);
    let (owner, taker) = (world.thread(1), world.thread(0));
    let other = loom::thread::spawn(move || {
        taker.take_all(true, fence);
        taker.write_shelved()
    });
    let used = (0..uses).filter(|_| owner.use_one()).count() as u32;
    let written = other.join().unwrap();
    world.end(used + written);
}

/// The pool ends: the cache is freed while its owner may be inside.
fn taken_for_good() {
    let world = World::new(1);
    let (owner, taker) = (world.thread(1), world.thread(0));
    let other = loom::thread::spawn(move || taker.take_all(false, Fence::Works));
    let used = (0..2).filter(|_| owner.use_one()).count() as u32;
    other.join().unwrap();
    // It finds no cache any more.
    world.end(used);
}

/// Two threads with a cache each, and one that takes both away behind one fence.
fn two_are_taken() {
    let world = World::new(2);
    let (one, other, taker) = (world.thread(1), world.thread(1), world.thread(0));
    let threads = [one, other].map(|owner| loom::thread::spawn(move || u32::from(owner.use_one())));
    taker.take_all(true, Fence::Works);
    let written = taker.write_shelved();
    let used: u32 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    world.end(used + written);
}

/// Two take the same cache away, one after the other.
fn taken_twice() {
    let world = World::new(1);
    let (owner, one, other) = (world.thread(1), world.thread(0), world.thread(0));
    let takers = [one, other].map(|taker| {
        loom::thread::spawn(move || {
            taker.take_all(true, Fence::Works);
            taker.write_shelved()
        })
    });
    let used = u32::from(owner.use_one());
    let written: u32 = takers.into_iter().map(|taker| taker.join().unwrap()).sum();
    world.end(used + written);
}

/// Two threads take each other's caches away and use their own.
fn each_takes_the_other() {
    let world = World::new(2);
    let (one, other) = (world.thread(1), world.thread(1));
    let step = |thread: crate::world::Thread| {
        thread.take_all(true, Fence::Works);
        u32::from(thread.use_one())
    };
    let there = loom::thread::spawn(move || step(other));
    let used = step(one) + there.join().unwrap();
    world.end(used);
}

/// The owner ends while its cache is being taken away.
fn ends_while_taken() {
    let world = World::new(1);
    let (owner, taker) = (world.thread(1), world.thread(0));
    let other = loom::thread::spawn(move || {
        taker.take_all(true, Fence::Works);
        taker.write_shelved()
    });
    let used = u32::from(owner.use_one());
    let kept = owner.clone();
    owner.end();
    let written = other.join().unwrap();
    // What `Attached` points to lives until the threads are joined, as a thread's own storage does.
    drop(kept);
    world.end(used + written);
}

#[test]
fn a_cache_is_taken_and_given_back() {
    holds(None, || taken_and_given_back(1, Fence::Works));
    holds(None, || taken_and_given_back(2, Fence::Works));
    holds(Some(4), || taken_and_given_back(3, Fence::Works));
}

#[test]
fn a_cache_is_taken_for_good() {
    holds(None, taken_for_good);
}

#[test]
fn two_caches_are_taken_behind_one_fence() {
    holds(Some(3), two_are_taken);
}

#[test]
fn a_cache_is_taken_twice() {
    holds(Some(3), taken_twice);
}

#[test]
fn two_take_each_others_caches() {
    holds(None, each_takes_the_other);
}

#[test]
fn a_thread_ends_while_its_cache_is_taken() {
    holds(None, ends_while_taken);
}

/// Then it stays with its thread, which goes on.
#[test]
fn without_a_barrier_to_be_had_nothing_is_taken() {
    holds(None, || taken_and_given_back(2, Fence::Refused));
}

#[test]
fn without_the_owners_barrier_it_is_inside_of_a_cache_that_is_not_its_own() {
    fails_without(Step::OwnerBarrier, RACE, Some(3), || taken_and_given_back(1, Fence::Works));
    fails_without(Step::OwnerBarrier, LOST, Some(3), taken_for_good);
}

#[test]
fn without_the_takers_fence_it_finds_the_owner_outside_too_early() {
    fails_without(Step::TakerFence, RACE, Some(3), || taken_and_given_back(1, Fence::Works));
    fails_without(Step::TakerFence, LOST, Some(3), taken_for_good);
}

#[test]
fn without_release_at_leaving_the_taker_misses_what_was_done_inside() {
    fails_without(Step::Leave, RACE, Some(3), || taken_and_given_back(1, Fence::Works));
}

#[test]
fn without_acquire_the_taker_misses_what_was_done_inside() {
    fails_without(Step::TakerLoad, RACE, Some(3), || taken_and_given_back(1, Fence::Works));
}

#[test]
fn without_release_and_acquire_the_owner_misses_that_its_cache_was_emptied() {
    fails_without(Step::GiveBack, RACE, Some(3), || taken_and_given_back(2, Fence::Works));
}
