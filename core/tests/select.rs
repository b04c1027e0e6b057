//! Waiting for many sources at once.

#[path = "support/asleep.rs"]
mod asleep;
mod support;

use asleep::Asleep;
use ramway::{ErrorKind, Listener, Readable, Receiver, Region, Ring, Select, Sender, Source, Topic, WaitPolicy};
use std::os::fd::AsFd;
use std::sync::mpsc::channel;
use std::time::Duration;

fn rings(count: usize) -> (Vec<Sender>, Vec<Receiver>) {
    (0..count).map(|_| Ring::pair(4096).unwrap()).unzip()
}

fn as_sources(receivers: &mut [Receiver]) -> Vec<&mut dyn Source> {
    receivers.iter_mut().map(|receiver| receiver as &mut dyn Source).collect()
}

/// Both ways of sleeping on few words, and on many: `futex_waitv`, an io_uring.
const COUNTS: [usize; 4] = [1, 3, 8, 40];

#[test]
fn gives_those_that_are_ready_and_no_other() {
    for count in COUNTS {
        let (mut senders, mut receivers) = rings(count);
        let mut select = Select::new();
        assert!(select.wait(&mut as_sources(&mut receivers), Some(Duration::ZERO)).unwrap().is_empty());
        assert!(select.wait(&mut as_sources(&mut receivers), Some(Duration::from_millis(2))).unwrap().is_empty());
        senders[count - 1].send(0, b"last").unwrap();
        senders[0].send(0, b"first").unwrap();
        let mut ready = select.wait(&mut as_sources(&mut receivers), None).unwrap().to_vec();
        ready.sort();
        ready.dedup();
        assert_eq!(ready, if count == 1 { vec![0] } else { vec![0, count - 1] });
        for index in ready {
            while receivers[index].try_recv().is_ok() {}
        }
        assert!(select.wait(&mut as_sources(&mut receivers), Some(Duration::ZERO)).unwrap().is_empty());
    }
}

#[test]
fn an_end_is_told_though_another_source_is_always_ready() {
    let (mut senders, mut receivers) = rings(2);
    let mut select = Select::new();
    senders[0].send(0, b"never taken").unwrap();
    assert_eq!(select.wait(&mut as_sources(&mut receivers), None).unwrap(), [0]);
    drop(senders.pop());
    let answers = (0..16).map(|_| select.wait(&mut as_sources(&mut receivers), None).unwrap().to_vec());
    assert!(answers.into_iter().any(|ready| ready.contains(&1)), "the closed ring is in none of 16 answers");
}

/// One that is always ready is found first, and keeps no other one from being found soon.
#[test]
fn a_busy_source_delays_the_others_by_few_answers() {
    for count in [9, 16, 100] {
        let (mut senders, mut receivers) = rings(count);
        let mut select = Select::new();
        senders[3].send(0, b"never taken").unwrap();
        let told = |select: &mut Select, receivers: &mut [Receiver], index: usize, within: usize| {
            let answers = (0..within).map(|_| select.wait_slice(receivers, None).unwrap().to_vec());
            let answers: Vec<_> = answers.collect();
            assert!(answers.iter().all(|ready| ready.contains(&3)), "the busy one is not in all of {answers:?}");
            assert!(answers.iter().any(|ready| ready.contains(&index)), "{index} of {count} is not in {answers:?}");
            for mut ready in answers {
                ready.sort();
                let answer = ready.clone();
                ready.dedup();
                assert_eq!(ready, answer, "one is told twice");
            }
        };
        for index in 0..count {
            if index != 3 {
                senders[index].send(0, b"x").unwrap();
                told(&mut select, &mut receivers, index, 16);
                receivers[index].try_recv().unwrap();
            }
        }
        drop(senders.pop());
        told(&mut select, &mut receivers, count - 1, count.max(15) + 1);
    }
}

/// What the last answer said of other sources is not taken for these.
#[test]
fn fewer_sources_than_in_the_last_answer() {
    let (mut senders, mut receivers) = rings(20);
    let mut select = Select::new();
    senders[19].send(0, b"x").unwrap();
    assert_eq!(select.wait_slice(&mut receivers, None).unwrap(), [19]);
    senders[2].send(0, b"x").unwrap();
    assert_eq!(select.wait_slice(&mut receivers[..12], None).unwrap(), [2]);
    // As many as before, in another order.
    receivers.reverse();
    assert_eq!(select.wait_slice(&mut receivers[..12], None).unwrap(), [0]);
}

#[test]
fn nobody_sleeps_through_a_message() {
    for (count, policy) in COUNTS.into_iter().flat_map(|n| [(n, WaitPolicy::Block), (n, WaitPolicy::Hybrid)]) {
        const ROUNDS: usize = 2_000;
        let (mut senders, mut receivers) = rings(count);
        let (mut back_tx, mut back_rx) = Ring::pair(4096).unwrap();
        let mut slow = 0;
        let (name, named) = channel();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                name.send(asleep::thread()).unwrap();
                for round in 0..ROUNDS {
                    senders[round * 7 % count].send(round as u32, b"x").unwrap();
                    back_rx.recv().unwrap();
                }
            });
            let mut select = Select::new();
            select.set_wait_policy(policy);
            let mut both = Asleep::of(&[asleep::thread(), named.recv().unwrap()]);
            for round in 0..ROUNDS {
                let ready = select.wait(&mut as_sources(&mut receivers), None).unwrap().to_vec();
                slow += usize::from(both.take() > Duration::from_millis(90));
                assert_eq!(ready, [round * 7 % count]);
                assert_eq!(receivers[ready[0]].try_recv().unwrap().type_id(), round as u32);
                back_tx.send(0, b"").unwrap();
            }
        });
        // One that was lost would be found after 100 ms, and both threads sleep through them.
        assert!(
            slow <= ROUNDS / 1000,
            "both threads slept for 90 ms in {slow} of {ROUNDS} rounds: wake-ups are lost ({count} rings, {policy:?})"
        );
    }
}

#[test]
fn the_one_that_came_first_comes_last_the_next_time() {
    let (mut senders, mut receivers) = rings(3);
    senders.iter_mut().for_each(|sender| sender.send(0, b"x").unwrap());
    let mut select = Select::new();
    let mut firsts = Vec::new();
    for _ in 0..6 {
        let ready = select.wait(&mut as_sources(&mut receivers), None).unwrap();
        assert_eq!(ready.len(), 3);
        firsts.push(ready[0]);
    }
    assert_eq!(firsts, [0, 1, 2, 0, 1, 2]);
}

#[test]
fn every_kind_of_source_ends_a_wait() {
    let place = support::Dir::new();
    let (mut ring_tx, mut ring) = Ring::pair(4096).unwrap();
    let mut publisher = Topic::create(place.at("topic")).publisher().unwrap();
    let open = || Topic::open(place.at("topic"));
    let (mut reliable, mut lossy) = (open().subscriber().unwrap(), open().lossy().subscriber().unwrap());
    let mut latest = open().latest().subscriber().unwrap();
    let notifier = Region::create(place.at("region"), 8).unwrap();
    let mut region = Region::open(place.at("region")).unwrap();
    let mut listener = Listener::bind(place.at("listener.sock")).unwrap();
    let (mut full, mut drain) = Ring::pair(4096).unwrap();
    while full.try_send(0, &[0; 1000]).is_ok() {}
    let (pipe, mut writer) = std::io::pipe().unwrap();
    let mut select = Select::new();
    for kind in 0..7 {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(20));
                match kind {
                    0 => ring_tx.send(0, b"x").unwrap(),
                    1..=3 => publisher.send(0, b"x").unwrap(),
                    4 => notifier.notify().unwrap(),
                    5 => drop(std::os::unix::net::UnixStream::connect(place.at("listener.sock")).unwrap()),
                    _ => std::io::Write::write_all(&mut writer, b"x").unwrap(),
                }
            });
            let mut readable = Readable(pipe.as_fd());
            let mut room = full.room(1000);
            let mut sources: [&mut dyn Source; 8] = [
                &mut ring,
                &mut reliable,
                &mut lossy,
                &mut latest,
                &mut region,
                &mut listener,
                &mut readable,
                &mut room,
            ];
            let mut ready = select.wait(&mut sources, Some(Duration::from_secs(20))).unwrap().to_vec();
            ready.sort();
            match kind {
                0 => assert_eq!(ready, [0]),
                1..=3 => assert!(!ready.is_empty() && ready.iter().all(|index| (1..=3).contains(index)), "{ready:?}"),
                4 => assert_eq!(ready, [4]),
                5 => assert_eq!(ready, [5]),
                _ => assert_eq!(ready, [6]),
            }
        });
        while ring.try_recv().is_ok() {}
        while reliable.try_recv().is_ok() {}
        while lossy.try_recv().is_ok() {}
        while latest.try_recv().is_ok() {}
        let _ = (region.try_wait(), listener.try_accept());
    }
    while drain.try_recv().is_ok() {}
    let mut room = full.room(1000);
    let mut sources: [&mut dyn Source; 2] = [&mut room, &mut ring];
    assert_eq!(select.wait(&mut sources, None).unwrap(), [0]);
}

#[test]
fn a_close_and_an_end_of_a_name_are_ready() {
    let place = support::Dir::new();
    let mut select = Select::new();
    let (senders, mut receivers) = rings(2);
    drop(senders);
    assert_eq!(select.wait(&mut as_sources(&mut receivers), None).unwrap().len(), 2);
    assert_eq!(receivers[0].try_recv().unwrap_err().kind(), ErrorKind::Closed);

    let mut alone = [Ring::create(place.at("ring")).receiver().unwrap()];
    std::fs::remove_file(place.at("ring")).unwrap();
    let ready = select.wait(&mut as_sources(&mut alone), Some(Duration::from_secs(20))).unwrap().to_vec();
    assert_eq!(ready, [0]);
    assert_eq!(alone[0].try_recv().unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn another_thread_ends_a_wait_and_a_waiter_keeps_what_is_ready() {
    let (mut senders, mut receivers) = rings(2);
    let mut select = Select::new();
    let waker = select.waker();
    waker.wake();
    assert_eq!(select.wait(&mut as_sources(&mut receivers), None).unwrap_err().kind(), ErrorKind::Interrupted);
    for count in [2, 40] {
        let (_senders, mut many) = rings(count);
        std::thread::scope(|scope| {
            let waker = &waker;
            scope.spawn(move || {
                std::thread::sleep(Duration::from_millis(30));
                waker.wake();
            });
            let ended = select.wait(&mut as_sources(&mut many), None).map(<[usize]>::to_vec);
            assert_eq!(ended.unwrap_err().kind(), ErrorKind::Interrupted);
        });
    }
    senders[1].send(0, b"x").unwrap();
    waker.wake();
    assert_eq!(select.wait(&mut as_sources(&mut receivers), None).unwrap(), [1]);
}

#[test]
fn what_cannot_be_waited_for_is_said() {
    let (_senders, mut receivers) = rings(2);
    let mut select = Select::new();
    let kind = |result: ramway::Result<&[usize]>| result.unwrap_err().kind();
    assert_eq!(kind(select.wait(&mut [], None)), ErrorKind::InvalidArgument);
    assert!(select.wait(&mut [], Some(Duration::from_millis(1))).unwrap().is_empty());
    receivers[1].readiness().unwrap();
    let error = select.wait(&mut as_sources(&mut receivers), None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert!(error.to_string().contains("source 1"), "{error}");
}

/// A handle may go, and another come in its place, between two calls: also at the same address.
#[test]
fn sources_may_change_from_call_to_call() {
    let mut select = Select::new();
    select.set_wait_policy(WaitPolicy::Block);
    for round in 0..20 {
        let (mut senders, mut receivers) = rings(12 + round % 3);
        assert!(select.wait(&mut as_sources(&mut receivers), Some(Duration::from_millis(1))).unwrap().is_empty());
        let last = receivers.len() - 1;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(3));
                senders[last].send(0, b"x").unwrap();
            });
            assert_eq!(select.wait(&mut as_sources(&mut receivers), None).unwrap(), [last]);
        });
    }
}

#[test]
fn a_region_is_waited_for_by_several_at_once() {
    let place = support::Dir::new();
    let region = Region::create(place.at("region"), 64).unwrap();
    std::thread::scope(|scope| {
        let waits = || {
            let mut shared = &region;
            // The same one twice, too.
            let mut again = &region;
            Select::new().wait(&mut [&mut shared, &mut again], Some(Duration::from_secs(60))).unwrap().to_vec()
        };
        let waiters = [scope.spawn(waits), scope.spawn(waits)];
        std::thread::sleep(Duration::from_millis(20));
        region.notify().unwrap();
        for waiter in waiters {
            assert_eq!(waiter.join().unwrap(), [0, 1]);
        }
    });
}
