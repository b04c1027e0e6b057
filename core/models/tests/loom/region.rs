//! A region's notifications: several waiters on one word.

use crate::{LOST, two};
use loom::cell::UnsafeCell;
use ramway_models::{Notifications, Step, fails_without, holds, process};
use std::sync::Arc;

struct Shared {
    word: Notifications,
    value: UnsafeCell<u32>,
}

fn shared() -> Arc<Shared> {
    Arc::new(Shared { word: Notifications::default(), value: UnsafeCell::new(0) })
}

// SAFETY: loom runs one thread at a time, and checks the accesses to `value`.
unsafe impl Sync for Shared {}
// SAFETY: as above.
unsafe impl Send for Shared {}

fn write(shared: &Shared, value: u32) {
    // SAFETY: loom checks that nobody else has access.
    shared.value.with_mut(|at| unsafe { *at = value });
}

fn read(shared: &Shared) -> u32 {
    // SAFETY: loom checks that nobody writes.
    shared.value.with(|at| unsafe { *at })
}

fn one_notification() {
    let notifier = shared();
    let waiter = notifier.clone();
    two(
        move || {
            write(&notifier, 7);
            notifier.word.notify();
        },
        move || {
            assert_ne!(waiter.word.wait_since(0), 0);
            assert_eq!(read(&waiter), 7);
        },
    );
}

#[test]
fn a_waiter_sees_what_was_written_before_the_notification() {
    holds(None, one_notification);
}

#[test]
fn without_the_second_check_before_sleeping_a_notification_is_lost() {
    fails_without(&[Step::Recheck], LOST, Some(3), one_notification);
}

#[test]
fn no_notification_is_missed_between_two_waits() {
    holds(Some(3), || {
        let notifier = shared();
        let waiter = notifier.clone();
        two(
            move || {
                notifier.word.notify();
                notifier.word.notify();
            },
            move || {
                let mut known = 0;
                while known != 4 {
                    known = waiter.word.wait_since(known);
                }
            },
        );
    });
}

#[test]
fn two_waiters_are_both_woken() {
    holds(Some(2), || {
        let notifier = shared();
        let waiters: Vec<_> = (1..=2)
            .map(|cpu| {
                let shared = notifier.clone();
                loom::thread::spawn(move || process(cpu, || assert_eq!(shared.word.wait_since(0), 2)))
            })
            .collect();
        process(0, || notifier.word.notify());
        for waiter in waiters {
            waiter.join().unwrap();
        }
    });
}
