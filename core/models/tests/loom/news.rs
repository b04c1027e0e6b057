//! What other threads tell an RPC server: it never sleeps while there is something for it.

use crate::LOST;
use loom::sync::{Condvar, Mutex};
use ramway_models::news::News;
use ramway_models::{Step, fails_without, holds};
use std::sync::Arc;

const TOLD: usize = 2;

#[derive(Default)]
struct Server {
    news: News,
    /// How much there is for the server.
    events: Mutex<usize>,
    /// A wake-up that came, before the sleep or in it.
    woken: Mutex<bool>,
    changed: Condvar,
}

impl Server {
    fn tell(&self) {
        *self.events.lock().unwrap() += 1;
        if self.news.tell() {
            *self.woken.lock().unwrap() = true;
            self.changed.notify_one();
        }
    }

    fn take(&self) -> usize {
        self.news.take(|| std::mem::take(&mut *self.events.lock().unwrap()))
    }

    fn sleep(&self) {
        let mut woken = self.woken.lock().unwrap();
        while !*woken {
            woken = self.changed.wait(woken).unwrap();
        }
        *woken = false;
    }

    /// As the server's loop: what is there, then a sleep if there is nothing.
    fn serve(&self) {
        let mut taken = 0;
        loop {
            taken += self.take();
            if taken == TOLD {
                return;
            }
            if self.news.may_sleep() {
                self.sleep();
                self.news.is_awake();
            }
        }
    }
}

/// Two threads tell a server something each.
fn two_tell() {
    let server = Arc::new(Server::default());
    let threads = [0, 1].map(|_| {
        let server = server.clone();
        loom::thread::spawn(move || server.tell())
    });
    server.serve();
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn a_server_takes_all_that_it_is_told() {
    holds(Some(3), two_tell);
}

#[test]
fn a_fence_or_the_check_left_out_leaves_it_asleep() {
    for steps in [&[Step::TellerFence], &[Step::ServerFence], &[Step::NewsBeforeSleep]] {
        fails_without(steps, LOST, Some(3), two_tell);
    }
}

#[test]
fn an_announcement_that_is_taken_back_too_late_is_lost() {
    fails_without(&[Step::TakeNewsFirst], LOST, Some(3), two_tell);
}
