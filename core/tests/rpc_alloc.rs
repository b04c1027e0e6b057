//! What a call allocates: the copy of a long reply, and nothing else.

mod support;

use ramway::rpc::{CallOptions, Client};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;
use support::Dir;
use support::rpc::Server;

struct Counting;

thread_local! {
    /// Allocations of this thread: the server has one of its own.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    // A thread that ends has no counter any more.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: passed on.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count();
        // SAFETY: passed on.
        unsafe { System.realloc(at, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of one round, after as many that set up what is kept.
fn of(rounds: u64, mut round: impl FnMut()) -> u64 {
    (0..rounds).for_each(|_| round());
    let before = ALLOCATIONS.get();
    (0..rounds).for_each(|_| round());
    (ALLOCATIONS.get() - before).div_ceil(rounds)
}

#[test]
fn a_call_allocates_the_copy_of_a_long_reply_alone() {
    let dir = Dir::new();
    let path = dir.at("rpc.sock");
    let listener = Server::listener(&path, 1 << 16, 64);
    let server = std::thread::spawn(move || Server::accept(&listener).echo());
    let mut client = Client::connect(&path).unwrap();
    let late = CallOptions::new().timeout(Duration::from_secs(3600)).meta(b"trace");
    assert_eq!(of(5000, || drop(client.call(1, b"body").unwrap())), 0);
    assert_eq!(of(5000, || drop(client.call(1, b"").unwrap())), 0);
    assert_eq!(of(5000, || drop(client.call_with(1, b"body", &late).unwrap())), 0);
    for (body, allocations) in [(&[1; 32][..], 0), (&[1; 100], 1)] {
        assert_eq!(of(500, || drop(client.call(1, body).unwrap())), allocations);
        assert_eq!(
            of(500, || {
                for call in [body; 2].map(|body| client.start_with(1, body, &late).unwrap()) {
                    call.wait(&mut client).unwrap();
                }
            }),
            2 * allocations
        );
    }
    drop(client);
    server.join().unwrap();
}
