//! Measures the framings and header layouts that version 1 of the format chose between: two pinned processes over
//! one memfd, every candidate in every round, the receiver reading every byte. `docs/adr/0001-framing.md` holds a run.
//!
//! `cargo run --release -p ramway-bench --example framings [ROUNDS [CAPACITY_KIB]]`

mod ring;
mod shared;

use ring::{Shape, commit, hint, marks, wait};
use shared::{Shared, spin_until};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Instant;

/// Messages of one burst: about 0.1 ms, short beside a scheduler's time slice.
const MESSAGES: u64 = 10_000;
/// Round trips of one burst.
const TRIPS: u64 = 1_000;

#[derive(Clone, Copy, PartialEq)]
enum Test {
    RoundTrip,
    Each,
    Every32,
}

/// One row of the table. `lead` and `follow` are the two processes' halves of a burst that starts at a position.
struct Row {
    test: Test,
    name: &'static str,
    /// What one operation of the burst is, for the division.
    operations: u64,
    lead: fn(&Shared, u64),
    follow: fn(&Shared, u64),
}

/// The rows of one shape: published each, published every 32, round trip.
fn rows_of<S: Shape>(rows: &mut Vec<Row>) {
    rows.push(Row {
        test: Test::Each,
        name: S::NAME,
        operations: MESSAGES,
        lead: |s, start| ring::send_all::<S, 1>(s, start, MESSAGES),
        follow: |s, start| ring::receive_all::<S, 1>(s, start, MESSAGES),
    });
    rows.push(Row {
        test: Test::Every32,
        name: S::NAME,
        operations: MESSAGES,
        lead: |s, start| ring::send_all::<S, 32>(s, start, MESSAGES),
        follow: |s, start| ring::receive_all::<S, 32>(s, start, MESSAGES),
    });
    rows.push(Row {
        test: Test::RoundTrip,
        name: S::NAME,
        operations: TRIPS,
        lead: |s, start| ring::ping::<S>(s, start, TRIPS),
        follow: |s, start| ring::echo::<S>(s, start, TRIPS),
    });
}

macro_rules! shapes {
    ($rows:ident: $($type:ident $name:literal $header:literal / $align:literal line $line:literal $commit:ident
        marks $marks:ident wait $wait:ident seq_cst $seq:literal hint $hint:ident pauses $first:literal $each:literal $later:literal;)*) => {$(
        struct $type;
        impl Shape for $type {
            const NAME: &'static str = $name;
            const HEADER: usize = $header;
            const ALIGN: usize = $align;
            const LINE: usize = $line;
            const COMMIT: u8 = commit::$commit;
            const MARKS: u8 = marks::$marks;
            const HINT: u8 = hint::$hint;
            const PAUSES: (u8, u8, u8) = ($first, $each, $later);
            const WAIT: u8 = wait::$wait;
            const SEQ_CST: bool = $seq;
        }
        rows_of::<$type>(&mut $rows);
    )*};
}

fn rows() -> Vec<Row> {
    fn flag<const PAUSE: bool>(shared: &Shared, lead: bool) {
        let (mine, theirs) = if lead { (0, 1) } else { (1, 0) };
        for n in 1..=TRIPS {
            // The value carries no other data; acquire and release are what a real hand-off would use.
            if lead {
                shared.flag(mine).store(n, Release);
            }
            while shared.flag(theirs).load(Acquire) != n {
                if PAUSE {
                    std::hint::spin_loop();
                }
            }
            if !lead {
                shared.flag(mine).store(n, Release);
            }
        }
    }
    let mut rows = vec![
        Row {
            test: Test::RoundTrip,
            name: "raw flag, PAUSE in the loop",
            operations: TRIPS,
            lead: |s, _| flag::<true>(s, true),
            follow: |s, _| flag::<true>(s, false),
        },
        Row {
            test: Test::RoundTrip,
            name: "raw flag, no PAUSE",
            operations: TRIPS,
            lead: |s, _| flag::<false>(s, true),
            follow: |s, _| flag::<false>(s, false),
        },
    ];
    shapes! { rows:
        AsFrozen "as frozen: 16/16, lines of 128, marks, own wait line" 16/16 line 128 Positions marks WithTail wait OwnLine seq_cst false hint None pauses 1 1 1;
        Again "the same once more (noise)" 16/16 line 128 Positions marks WithTail wait OwnLine seq_cst false hint None pauses 1 1 1;
        NoMarks "without marks" 16/16 line 128 Positions marks Absent wait OwnLine seq_cst false hint None pauses 1 1 1;
        MarksApart "marks in a line of their own" 16/16 line 128 Positions marks OwnLine wait OwnLine seq_cst false hint None pauses 1 1 1;
        NoWait "without reading the wait word" 16/16 line 128 Positions marks WithTail wait Unread seq_cst false hint None pauses 1 1 1;
        Bare "without marks, without the wait word" 16/16 line 128 Positions marks Absent wait Unread seq_cst false hint None pauses 1 1 1;
        WithHead "wait word in head's line" 16/16 line 128 Positions marks WithTail wait WithHead seq_cst false hint None pauses 1 1 1;
        Lines64 "lines of 64" 16/16 line 64 Positions marks WithTail wait OwnLine seq_cst false hint None pauses 1 1 1;
        SeqCst "seq_cst store of tail" 16/16 line 128 Positions marks WithTail wait OwnLine seq_cst true hint None pauses 1 1 1;
        H8 "header/align 8/8" 8/8 line 128 Positions marks WithTail wait OwnLine seq_cst false hint None pauses 1 1 1;
        H16A32 "header/align 16/32" 16/32 line 128 Positions marks WithTail wait OwnLine seq_cst false hint None pauses 1 1 1;
        H16A64 "header/align 16/64" 16/64 line 128 Positions marks WithTail wait OwnLine seq_cst false hint None pauses 1 1 1;
        H64 "header/align 64/64" 64/64 line 128 Positions marks WithTail wait OwnLine seq_cst false hint None pauses 1 1 1;
        OwnNext "marks apart, sender asks for the next frame's line" 16/16 line 128 Positions marks OwnLine wait OwnLine seq_cst false hint OwnNext pauses 1 1 1;
        FetchFrame "marks apart, receiver asks for the frame's line while it polls" 16/16 line 128 Positions marks OwnLine wait OwnLine seq_cst false hint FetchFrame pauses 1 1 1;
        Hints "marks apart, both ask" 16/16 line 128 Positions marks OwnLine wait OwnLine seq_cst false hint Both pauses 1 1 1;
        P00 "PAUSE: 0 after the first empty look, then 0" 16/16 line 128 Positions marks WithTail wait OwnLine seq_cst false hint None pauses 0 0 0;
        P21 "PAUSE: 2 after the first empty look, then 1" 16/16 line 128 Positions marks WithTail wait OwnLine seq_cst false hint None pauses 2 1 1;
        P31 "PAUSE: 3 after the first empty look, then 1" 16/16 line 128 Positions marks WithTail wait OwnLine seq_cst false hint None pauses 3 1 1;
        P41 "PAUSE: 4 after the first empty look, then 1" 16/16 line 128 Positions marks WithTail wait OwnLine seq_cst false hint None pauses 4 1 1;
        P61 "PAUSE: 6 after the first empty look, then 1" 16/16 line 128 Positions marks WithTail wait OwnLine seq_cst false hint None pauses 6 1 1;
        P33 "PAUSE: 3 after the first empty look, then 3" 16/16 line 128 Positions marks WithTail wait OwnLine seq_cst false hint None pauses 3 3 3;
        P313 "PAUSE: 3 after the first empty look, then 1 four times, then 3" 16/16 line 128 Positions marks WithTail wait OwnLine seq_cst false hint None pauses 3 1 3;
        F31 "the same 3, 1 and the frame asked for with each look" 16/16 line 128 Positions marks WithTail wait OwnLine seq_cst false hint FetchWithLook pauses 3 1 1;
        N31 "the same 3, 1 without marks" 16/16 line 128 Positions marks Absent wait OwnLine seq_cst false hint None pauses 3 1 1;
        Lap "commit word inline, lap stamp (no marks)" 16/16 line 128 LapStamp marks Absent wait OwnLine seq_cst false hint None pauses 1 1 1;
        Terminator "commit word inline, terminator (no marks)" 16/16 line 128 Terminator marks Absent wait OwnLine seq_cst false hint None pauses 1 1 1;
    }
    rows
}

/// What `lead` tells `follow` between bursts.
const QUIT: u64 = u64::MAX;

fn follow(shared: &Shared, rows: &[Row]) -> ! {
    let mut burst = 0;
    loop {
        burst += 1;
        spin_until(|| shared.burst().load(Acquire) == burst);
        let row = shared.row().load(Relaxed);
        if row == QUIT {
            // SAFETY: ends the child at once; nothing in it wants a destructor.
            unsafe { libc::_exit(0) }
        }
        let start = shared.start().load(Relaxed);
        shared.ready().store(burst, Release);
        (rows[row as usize].follow)(shared, start);
        shared.done().store(burst, Release);
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|a| a.parse::<usize>().expect("numbers: ROUNDS [CAPACITY_KIB]"));
    let rounds = arguments.next().unwrap_or(1000);
    let capacity = arguments.next().unwrap_or(1024) * 1024;
    assert!(capacity.is_power_of_two() && capacity >= 4096, "the capacity is a power of two");
    let rows = rows();
    let cpus = shared::two_cpus();
    let shared = Shared::new(capacity);
    // SAFETY: the process has one thread; the child calls nothing but the bursts and _exit.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork failed");
    if child == 0 {
        shared::pin(cpus.1);
        shared::die_with_parent();
        follow(&shared, &rows);
    }
    shared::pin(cpus.0);

    shared::exit_if_a_child_dies(true);
    let mut samples = vec![Vec::with_capacity(rounds); rows.len()];
    let (mut burst, mut position) = (0, 0);
    for round in 0..rounds + rounds / 10 + 1 {
        for turn in 0..rows.len() {
            // A different row is first, and has another neighbour before it, in each round.
            let row = (turn * (1 + 2 * (round % 2)) + round) % rows.len();
            burst += 1;
            shared.prepare(position);
            shared.row().store(row as u64, Relaxed);
            shared.start().store(position, Relaxed);
            shared.burst().store(burst, Release);
            spin_until(|| shared.ready().load(Acquire) == burst);
            let begin = Instant::now();
            (rows[row].lead)(&shared, position);
            while shared.done().load(Acquire) != burst {
                std::hint::spin_loop();
            }
            let ns = begin.elapsed().as_nanos() as f64 / rows[row].operations as f64;
            if round > rounds / 10 {
                samples[row].push(ns);
            }
            // Past everything that this burst wrote, and on every alignment's grid.
            position = shared.end().load(Relaxed).next_multiple_of(4096) + capacity as u64;
        }
    }
    shared::exit_if_a_child_dies(false);
    shared.row().store(QUIT, Relaxed);
    shared.burst().store(burst + 1, Release);
    // SAFETY: waits for this process's own child.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    print(&rows, &samples, rounds, capacity);
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn print(rows: &[Row], samples: &[Vec<f64>], rounds: usize, capacity: usize) {
    println!("{} · {rounds} rounds · ring of {} KiB · 32-byte messages", shared::cpu_model(), capacity / 1024);
    for (test, title) in [
        (Test::RoundTrip, "round trip"),
        (Test::Each, "one way, published each"),
        (Test::Every32, "one way, published every 32"),
    ] {
        println!("\n| {title} | min ns | median ns | × as frozen |\n| --- | ---: | ---: | ---: |");
        let frozen = rows.iter().position(|r| r.test == test && r.name.starts_with("as frozen")).expect("a row");
        for (row, sample) in rows.iter().zip(samples).filter(|(r, _)| r.test == test) {
            let min = sample.iter().copied().fold(f64::INFINITY, f64::min);
            // The median of the ratios within each round: what disturbs a round disturbs both sides of it.
            let ratio = median(sample.iter().zip(&samples[frozen]).map(|(a, b)| a / b).collect());
            println!("| {} | {min:.1} | {:.1} | {ratio:.2} |", row.name, median(sample.clone()));
        }
    }
}
