//! Peers of RPC in other processes that speak the protocol and, between the calls, write anything into the memory that they share: each
//! hurts its own connection alone, and takes no more memory than the limits allow.

mod support;

use ramway::rpc::{Call, CallError, CallOptions, CallResult, Client, Server, Stopper};
use ramway::{ErrorKind, WaitPolicy};
use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;
use support::{Dir, LONG, Peer, eventually, helper_role, listen, say};

/// Bytes that are allocated now, and the most that were since [`watch`].
static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

struct Watching;

fn more(bytes: usize) {
    let held = HELD.fetch_add(bytes, Ordering::Relaxed) + bytes;
    MOST.fetch_max(held, Ordering::Relaxed);
}

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        more(layout.size());
        // SAFETY: passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: passed on.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        more(new_size);
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: passed on.
        unsafe { System.realloc(at, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Watching = Watching;

/// Runs `work`, which may not take more memory than what it shows here, far less than a length that was written over could ask for.
fn watch(work: impl FnOnce()) {
    let before = HELD.load(Ordering::SeqCst);
    MOST.store(before, Ordering::SeqCst);
    work();
    let taken = MOST.load(Ordering::SeqCst) - before;
    assert!(taken < 8 << 20, "{taken} bytes were taken");
}

const CAPACITY: u64 = 1 << 14;
/// Of requests and replies that are kept.
const BYTES: usize = 1 << 16;
/// Connections that a scribbler must have lost.
const ENDED: u64 = 15;

struct Random(u64);

impl Random {
    fn next(&mut self) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize
    }
}

/// A mapping of a bus's memory that this process may write to.
#[derive(Clone, Copy)]
struct Mapping {
    from: usize,
    len: usize,
    /// Whether it begins with the header; else it is data.
    is_header: bool,
}

/// Those of all buses.
fn mappings() -> Vec<Mapping> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let mapping = |line: &str| {
        let mut fields = line.split_whitespace();
        let (range, access, offset) = (fields.next()?, fields.next()?, fields.next()?);
        let (from, to) = range.split_once('-').filter(|_| access == "rw-s" && line.contains("memfd:"))?;
        let [from, to, offset] = [from, to, offset].map(|text| usize::from_str_radix(text, 16).unwrap());
        Some(Mapping { from, len: to - from, is_header: offset == 0 })
    };
    maps.lines().filter_map(mapping).collect()
}

/// Writes anything to a few words of both rings' blocks, and of the data.
fn scribble(mappings: &[Mapping], random: &mut Random) {
    for _ in 0..1 + random.next() % 8 {
        // Mostly frames: words of the blocks are soon seen to be wrong by the end that wrote them, too.
        let header = random.next().is_multiple_of(8);
        let of_kind: Vec<_> = mappings.iter().filter(|mapping| mapping.is_header == header).collect();
        if of_kind.is_empty() {
            continue;
        }
        let &Mapping { from, len, is_header } = of_kind[random.next() % of_kind.len()];
        let block = [0x400, 0x800][random.next() % 2];
        let at = match random.next() % 2 {
            _ if !is_header => 8 * (random.next() % (len / 8)),
            0 => block + [0x80, 0x100][random.next() % 2],
            _ => block + 0x80 + 8 * (random.next() % 0x40),
        };
        // SAFETY: inside the mapping, which this thread alone could unmap, and aligned.
        let word = unsafe { AtomicU64::from_ptr((from + at) as *mut u64) };
        let now = word.load(Ordering::Relaxed);
        let step = 16 * (random.next() % 64) as u64;
        let values = [0, u64::MAX, 1 << 63, CAPACITY, now.wrapping_add(step), now.wrapping_sub(step), now << 32, 5];
        word.store(values[random.next() % values.len()], Ordering::Relaxed);
    }
}

/// Of methods: 7 replies with the request, 2 is a stream that does not end, 1 is answered never.
fn methods(server: &mut Server) {
    server.method(7, |request| Ok(request.write(request.body()))).unwrap();
    server.stream(2, |_| Ok((0u64..).map(|n| Ok(n.to_le_bytes())))).unwrap();
    let held = Arc::<Mutex<BTreeMap<u64, Call>>>::default();
    let mut next = 0;
    server
        .deferred(1, move |call| {
            next += 1;
            let (number, cancellation) = (next, call.cancellation());
            held.lock().unwrap().insert(number, call);
            let held = held.clone();
            // With its calls the place of a client that is gone becomes free.
            cancellation.on_cancel(move || drop(held.lock().unwrap().remove(&number)));
        })
        .unwrap();
}

/// A connection. Those that have ended may still be counted for a moment, and then there is no place.
fn connect(path: &str) -> Client {
    let mut client = None;
    eventually("there is a place", || match Client::connector(path).timeout(LONG).max_buffered(BYTES).connect() {
        Ok(connected) => {
            client = Some(connected);
            true
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
            false
        }
    });
    client.unwrap()
}

fn server(path: &str) -> Server {
    let builder = Server::builder(path).capacity(CAPACITY).max_clients(2).max_in_flight(64).max_bytes(BYTES);
    let mut server = builder.bind().unwrap();
    methods(&mut server);
    server
}

#[test]
fn helper() {
    let Some(role) = helper_role() else { return };
    match role.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["client", path, seed] => scribbling_client(path, &mut Random(seed.parse().unwrap())),
        ["server", path, seed] => scribbling_server(path, &mut Random(seed.parse().unwrap())),
        _ => panic!("{role:?}"),
    }
}

/// Connects again and again, calls as a right client does, and scribbles; says how the connections ended.
fn scribbling_client(path: &str, random: &mut Random) {
    let mut ends = BTreeMap::<&str, u64>::new();
    let options = CallOptions::new().timeout(Duration::from_millis(20));
    // `PeerDead` is the server's doing. This end is `Corrupt` by its own writing.
    while ends.get("PeerDead").is_none_or(|&ends| ends < ENDED) {
        let mut client = connect(path);
        let mappings = mappings();
        assert!(mappings.iter().any(|mapping| mapping.is_header) && mappings.len() > 1, "a bus has a header and data");
        let mut calls = Vec::new();
        let mut streams = Vec::new();
        for round in 0..40 {
            let size = random.next() % 3000;
            match random.next() % 4 {
                0 => streams.extend(client.stream_with(2, b"", &options)),
                1 => calls.extend(client.start_with(1, &vec![2; size], &options)),
                2 => drop(client.call_with(7, &vec![1; size], &options)),
                _ => calls.extend(client.start_with(7, &vec![1; size], &options)),
            }
            // The first calls go well.
            if round > 3 {
                scribble(&mappings, random);
            }
            if random.next().is_multiple_of(8) {
                calls.clear();
            }
            streams.iter_mut().for_each(|stream| drop(stream.try_next(&mut client)));
        }
        let end = match client.call_with(7, b"", &options) {
            Ok(_) => "none",
            Err(error) => error.kind().map_or("status", ErrorKind::name),
        };
        // Of the others this end does not know whether the server has dropped it.
        if end != "none" && end != "status" && end != "TimedOut" {
            *ends.entry(end).or_default() += 1;
        }
    }
    say(format!("{ends:?}"));
}

/// Serves as a right server does, and scribbles between the rounds, until it is told to end.
fn scribbling_server(path: &str, random: &mut Random) {
    let mut server = server(path);
    server.set_wait_policy(WaitPolicy::Block);
    let stopper = server.stopper();
    let told = std::thread::spawn(move || {
        listen();
        stopper.shutdown(Duration::ZERO);
    });
    say("listening");
    while !told.is_finished() {
        // What it says of its time, of a client that it finds `Corrupt` itself, or of the shutdown, does not matter.
        let _ = server.run_timeout(Duration::from_millis(1));
        let mappings = mappings();
        if !mappings.is_empty() && random.next().is_multiple_of(4) {
            scribble(&mappings, random);
        }
    }
    told.join().unwrap();
}

/// Ends the server and the honest client also where the test fails: it is to say so, and not to wait for them.
struct Ending<'a>(&'a AtomicBool, Stopper);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        self.1.shutdown(Duration::ZERO);
    }
}

/// Calls all the time until `stop`, at least a hundred times: each is answered, and right.
fn honest_client(path: &str, stop: &AtomicBool) {
    let mut client = connect(path);
    let mut calls = 0u64;
    while !stop.load(Ordering::Relaxed) || calls < 100 {
        let mut stream = client.stream_with(2, b"", &CallOptions::new().window(2)).unwrap();
        assert_eq!(client.call(7, &calls.to_le_bytes()).unwrap().body(), calls.to_le_bytes());
        for element in 0..4u64 {
            assert_eq!(stream.next(&mut client).unwrap().unwrap().body(), element.to_le_bytes());
        }
        stream.cancel(&mut client);
        calls += 1;
    }
}

#[test]
fn a_client_that_scribbles_while_it_calls_disturbs_no_other() {
    let dir = Dir::new();
    let path = dir.at("rpc.sock");
    let mut server = server(&path);
    let (stop, stopper) = (AtomicBool::new(false), server.stopper());
    std::thread::scope(|scope| {
        watch(|| {
            let ending = Ending(&stop, stopper);
            let serving = scope.spawn(move || server.run());
            let honest = scope.spawn(|| honest_client(&path, &stop));
            // It alone has the second place, so each of its connections that ended was let go of.
            let mut hostile = Peer::start(&["client", &path, "88172645463325252"]);
            let ends = hostile.hear();
            hostile.finish();
            eprintln!("the connections of the client that scribbles: {ends}");
            stop.store(true, Ordering::Relaxed);
            honest.join().unwrap();
            let mut next = connect(&path);
            assert_eq!(next.call(7, b"and the next").unwrap().body(), b"and the next");
            drop(next);
            drop(ending);
            serving.join().unwrap().unwrap();
        });
    });
}

/// What a call may come to, whatever the server wrote; whether it was the end of the connection.
fn is_over(error: &CallError) -> bool {
    use ErrorKind::{Closed, Corrupt, PeerDead, TimedOut, TooLarge};
    match error.kind() {
        None => false,
        Some(kind) => {
            assert!([Closed, Corrupt, PeerDead, TimedOut, TooLarge].contains(&kind), "{error}");
            ![TimedOut, TooLarge].contains(&kind)
        }
    }
}

/// Reads all of a reply; gives whether its call ended the connection.
fn read<T: AsRef<[u8]>>(outcome: CallResult<T>) -> bool {
    match outcome {
        Ok(reply) => {
            assert!(reply.as_ref().len() as u64 <= CAPACITY);
            std::hint::black_box(reply.as_ref().iter().fold(0u8, |sum, byte| sum ^ byte));
            false
        }
        Err(error) => is_over(&error),
    }
}

/// One connection to the server that scribbles, until it is over or has done much.
fn use_one(path: &str) -> bool {
    let connected = Client::connector(path).timeout(LONG).max_buffered(BYTES).connect();
    let mut client = match connected {
        Ok(client) => client,
        // It may write over a header before this end has looked at it, and know late that the last client is gone.
        Err(error) => {
            assert!([ErrorKind::Corrupt, ErrorKind::AbiMismatch, ErrorKind::Busy].contains(&error.kind()), "{error}");
            return false;
        }
    };
    let options = CallOptions::new().timeout(Duration::from_millis(20)).window(4);
    let mut over = false;
    let mut stream = None;
    for call in 0..200 {
        if stream.is_none() {
            stream = client.stream_with(2, b"", &options).ok();
        }
        over |= read(client.call_with(7, &vec![1; call * 13 % 3000], &options).map(|reply| reply.body().to_vec()));
        match stream.as_mut().map(|stream| stream.next_timeout(&mut client, Duration::ZERO)) {
            Some(Poll::Ready(Some(next))) => over |= read(next.map(|element| element.body().to_vec())),
            Some(Poll::Ready(None)) => stream = None,
            _ => {}
        }
        if over {
            let error = client.call(7, b"").unwrap_err();
            assert!(is_over(&error) && !error.may_have_run(), "the connection is over: {error}");
            return true;
        }
    }
    false
}

#[test]
fn a_server_that_scribbles_ends_its_connections_and_nothing_else() {
    let dir = Dir::new();
    let (path, good) = (dir.at("scribbler.sock"), dir.at("rpc.sock"));
    let mut server = server(&good);
    let (stop, stopper) = (AtomicBool::new(false), server.stopper());
    let mut hostile = Peer::start(&["server", &path, "88172645463325252"]);
    hostile.expect("listening");
    std::thread::scope(|scope| {
        watch(|| {
            let ending = Ending(&stop, stopper);
            let serving = scope.spawn(move || server.run());
            let honest = scope.spawn(|| honest_client(&good, &stop));
            let mut ended = 0;
            eventually("connections are ended", || {
                ended += u64::from(use_one(&path));
                ended >= ENDED
            });
            stop.store(true, Ordering::Relaxed);
            honest.join().unwrap();
            drop(ending);
            serving.join().unwrap().unwrap();
        });
    });
    hostile.tell("end");
    hostile.finish();
}
