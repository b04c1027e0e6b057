//! What a topic's publisher and its subscribers of each policy do in one process.

mod support;

use ramway::tensor::Dtype;
use ramway::{ErrorKind, Lag, Policy, Subscriber, Topic};
use std::io::IoSlice;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use support::topic::{POLICIES, create, is_whole, message, receive, receive_to, send, send_all};
use support::{Dir, LONG};

const SHORT: Duration = Duration::from_millis(10);

fn kind<T>(result: ramway::Result<T>) -> ErrorKind {
    result.map(drop).unwrap_err().kind()
}

/// Whether the bytes lie in a mapping of this file.
fn lies_in_file(bytes: &[u8], path: &str) -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let at = bytes.as_ptr().addr();
    maps.lines().filter(|line| line.ends_with(path)).any(|line| {
        let (from, rest) = line.split_once('-').unwrap();
        let to = rest.split_once(' ').unwrap().0;
        let [from, to] = [from, to].map(|text| usize::from_str_radix(text, 16).unwrap());
        (from..to).contains(&at)
    })
}

#[test]
fn each_policy_gives_what_it_promises() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = create(&name, 4096).publisher().unwrap();
    let mut reliable = Topic::open(&name).subscriber().unwrap();
    let mut lossy = Topic::open(&name).lossy().subscriber().unwrap();
    let mut latest = Topic::open(&name).latest().subscriber().unwrap();
    for (subscriber, policy) in [(&reliable, Policy::Reliable), (&lossy, Policy::Lossy), (&latest, Policy::Latest)] {
        assert_eq!(subscriber.policy(), policy);
        assert_eq!((subscriber.capacity(), subscriber.align(), subscriber.lost()), (rustix::param::page_size(), 32, 0));
        assert_eq!(subscriber.label(), None);
    }
    assert_eq!(publisher.seq(), 0);
    // Lengths from nothing to some, over many laps.
    for n in 1..500u64 {
        let len = (n as usize * 37) % 300;
        publisher.send_tagged(n as u32, n * 3, &message(n, len)).unwrap();
        assert_eq!(publisher.seq(), n);
        for subscriber in [&mut reliable, &mut lossy, &mut latest] {
            let received = subscriber.recv_timeout(LONG).unwrap();
            assert_eq!((received.seq(), received.lost(), received.time()), (n, 0, 0));
            assert_eq!((received.type_id(), received.tag()), (n as u32, n * 3));
            assert_eq!(&*received, message(n, len));
            assert_eq!(received.as_ptr().addr() % 32, 0);
        }
    }
    for subscriber in [&mut reliable, &mut lossy, &mut latest] {
        assert_eq!(kind(subscriber.try_recv()), ErrorKind::Empty);
        assert_eq!(kind(subscriber.recv_timeout(SHORT)), ErrorKind::TimedOut);
    }
}

#[test]
fn a_gap_is_the_exact_number_and_no_message_is_torn() {
    let dir = Dir::new();
    for (i, capacity) in [4096, 1 << 14].into_iter().enumerate() {
        let name = dir.at(&format!("topic{i}"));
        let mut publisher = create(&name, capacity).publisher().unwrap();
        let mut lossy = Topic::open(&name).lossy().subscriber().unwrap();
        let mut sent = 0;
        for burst in 1..200u64 {
            // From none lost to many laps.
            let count = burst * burst % 331 + 1;
            send_all(&mut publisher, count, &[0, 1, 100, 333, 64]);
            let (mut received, mut lost) = (0, 0);
            while received + lost < count {
                let (seq, gap) = receive(&mut lossy);
                received += 1;
                lost += gap;
                assert_eq!(seq, sent + received + lost);
            }
            sent += count;
            assert_eq!(received + lost, count, "burst {burst}");
            assert_eq!(kind(lossy.try_recv()), ErrorKind::Empty);
        }
        assert!(lossy.lost() > 1000);
        let mut copy = Topic::open(&name).lossy().subscriber().unwrap();
        assert_eq!(kind(copy.try_recv()), ErrorKind::Empty, "a lossy subscriber begins now");
    }
}

#[test]
fn a_gap_under_a_publisher_that_runs_meanwhile() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = create(&name, 1 << 14).publisher().unwrap();
    let mut lossy: Vec<Subscriber> = (0..2).map(|_| Topic::open(&name).lossy().subscriber().unwrap()).collect();
    let mut latest = Topic::open(&name).latest().subscriber().unwrap();
    const COUNT: u64 = 60_000;
    std::thread::scope(|scope| {
        for lossy in &mut lossy {
            scope.spawn(|| {
                let (mut received, mut lost) = (0, 0);
                loop {
                    let (seq, gap) = receive(lossy);
                    received += 1;
                    lost += gap;
                    assert_eq!(received + lost, seq);
                    if seq == COUNT {
                        break;
                    }
                }
                assert_eq!(lossy.lost(), lost);
            });
        }
        scope.spawn(|| {
            let (mut before, mut buffer) = (0, Vec::new());
            while before < COUNT {
                let meta = match latest.latest_into(&mut buffer) {
                    Ok(meta) => meta,
                    Err(e) if e.kind() == ErrorKind::Empty => continue,
                    Err(e) => panic!("{e}"),
                };
                assert!(is_whole(&buffer, meta.seq) && meta.len == buffer.len());
                assert!(meta.seq >= before, "{} after {before}", meta.seq);
                before = meta.seq;
            }
        });
        send_all(&mut publisher, COUNT, &[8, 700, 64, 1000]);
    });
}

/// Long messages, so that most copies are made while the publisher overwrites something.
#[test]
fn long_messages_are_whole_or_not_given_at_all() {
    const LEN: usize = 30_000;
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = create(&name, 1 << 16).publisher().unwrap();
    let mut lossy = Topic::open(&name).lossy().subscriber().unwrap();
    let mut latest = Topic::open(&name).latest().subscriber().unwrap();
    let payloads: Vec<Vec<u8>> = (0..16).map(|value| vec![value; LEN]).collect();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for seq in 1.. {
                publisher.send(0, &payloads[seq % 16]).unwrap();
                if stop.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        let read = scope.spawn(|| {
            let (mut buffer, mut read) = (vec![0; LEN], 0u64);
            while !stop.load(Ordering::Relaxed) {
                let meta = match latest.latest_into_slice(&mut buffer) {
                    Ok(meta) => meta,
                    Err(e) if e.kind() == ErrorKind::Empty => continue,
                    Err(e) => panic!("{e}"),
                };
                assert!(buffer == payloads[meta.seq as usize % 16], "message {} is torn", meta.seq);
                read += 1;
            }
            read
        });
        let (mut read_in_order, started) = (0u64, Instant::now());
        while started.elapsed() < Duration::from_millis(600) {
            let Ok(received) = lossy.recv_timeout(LONG) else { panic!("no message") };
            assert!(*received == payloads[received.seq() as usize % 16][..], "message {} is torn", received.seq());
            read_in_order += 1;
        }
        stop.store(true, Ordering::Relaxed);
        println!("{} newest ones and {read_in_order} in order", read.join().unwrap());
    });
}

#[test]
fn a_reliable_subscriber_reads_in_place_and_the_others_copy() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = create(&name, 4096).publisher().unwrap();
    let mut reliable = Topic::open(&name).subscriber().unwrap();
    let mut lossy = Topic::open(&name).lossy().subscriber().unwrap();
    let mut latest = Topic::open(&name).latest().subscriber().unwrap();
    send(&mut publisher, 100);
    assert!(lies_in_file(&reliable.recv().unwrap(), &name));
    assert!(!lies_in_file(&lossy.recv().unwrap(), &name));
    assert!(!lies_in_file(&latest.recv().unwrap(), &name));
    assert!(!lies_in_file(&reliable.latest().unwrap(), &name), "nobody keeps the newest one for it");
    drop((publisher, reliable, lossy, latest));

    // Where the publisher may eject it, a reliable one copies too.
    let name = dir.at("ejecting");
    let mut publisher = create(&name, 4096).may_eject(true).publisher().unwrap();
    let mut reliable = Topic::open(&name).subscriber().unwrap();
    send(&mut publisher, 100);
    let received = reliable.recv().unwrap();
    assert!(!lies_in_file(&received, &name));
    assert!(is_whole(&received, 1));
}

#[test]
fn batches_of_each_policy() {
    let dir = Dir::new();
    for (i, may_eject) in [false, true].into_iter().enumerate() {
        let name = dir.at(&format!("topic{i}"));
        let mut publisher = create(&name, 1 << 14).may_eject(may_eject).publisher().unwrap();
        let mut reliable = Topic::open(&name).subscriber().unwrap();
        let mut lossy = Topic::open(&name).lossy().subscriber().unwrap();
        assert_eq!(kind(reliable.recv_batch(0)), ErrorKind::InvalidArgument);
        assert_eq!(kind(reliable.try_recv_batch(5)), ErrorKind::Empty);
        for round in 0..30u64 {
            let count = publisher.send_batch(7, (1..=20u64).map(|n| message(round * 20 + n, 40))).unwrap();
            assert_eq!(count, 20);
            for subscriber in [&mut reliable, &mut lossy] {
                for (first, length) in [(1, 6), (7, 14)] {
                    let mut batch = subscriber.recv_batch(length).unwrap();
                    // All views of a batch live at the same time.
                    let all: Vec<_> = batch.iter().collect();
                    assert_eq!(all.len(), length);
                    for (n, view) in all.iter().enumerate() {
                        assert_eq!((view.seq(), view.lost()), (round * 20 + first + n as u64, 0));
                        assert_eq!(view.type_id(), 7);
                        assert!(is_whole(view, view.seq()));
                    }
                }
                assert!(subscriber.is_empty());
            }
        }
        publisher.send(7, b"last").unwrap();
        publisher.close().unwrap();
        for subscriber in [&mut reliable, &mut lossy] {
            let all: Vec<_> = subscriber.iter().collect::<ramway::Result<_>>().unwrap();
            assert_eq!(all.len(), 1, "a close ends the iterator, not as an error");
            assert_eq!((all[0].seq, all[0].lost, &all[0].data[..]), (601, 0, &b"last"[..]));
        }
    }
}

#[test]
fn a_batch_of_copies_takes_no_more_than_the_capacity() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = create(&name, 4096).publisher().unwrap();
    let mut lossy = Topic::open(&name).lossy().subscriber().unwrap();
    let mut sent = send(&mut publisher, 100);
    let mut batch = lossy.recv_batch(usize::MAX).unwrap();
    let (mut views, mut bytes) = (Vec::new(), 0);
    for view in batch.iter() {
        bytes += view.len();
        views.push(view);
        assert!(bytes <= rustix::param::page_size() + 200, "{} messages in one batch", views.len());
        // The publisher never waits for it, so there is always one more.
        sent = send(&mut publisher, 100);
    }
    assert!(views.iter().all(|view| is_whole(view, view.seq())));
    let next = views.last().unwrap().seq() + 1;
    drop(batch);
    assert_eq!(receive(&mut lossy), (next, 0));
    assert!(next <= sent);
}

#[test]
fn copies_into_a_vector_and_into_a_slice() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = create(&name, 4096).publisher().unwrap();
    for (i, policy) in POLICIES.into_iter().enumerate() {
        for round in 0..60u64 {
            let mut subscriber = Topic::open(&name).policy(policy);
            if policy != Policy::Latest {
                subscriber = subscriber.from_now();
            }
            let mut subscriber = subscriber.subscriber().unwrap();
            let _ = subscriber.latest().map(drop);
            let seq = send(&mut publisher, 300);
            assert_eq!(seq, (i as u64 * 60 + round) * 2 + 1);
            let mut short = [0xEE; 299];
            let refused = subscriber.recv_into_slice(&mut short).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::TooLarge);
            assert!(refused.to_string().contains("300 bytes into a buffer of 299"), "{refused}");
            assert_eq!(kind(subscriber.try_recv_into_slice(&mut [])), ErrorKind::TooLarge);
            assert_eq!(kind(subscriber.latest_into_slice(&mut short)), ErrorKind::TooLarge);
            // It stays the next message.
            let mut buffer = vec![9; 10];
            let meta = if round % 2 == 0 {
                subscriber.recv_into(&mut buffer).unwrap()
            } else {
                let mut exact = [0; 300];
                let meta = subscriber.recv_into_slice_timeout(&mut exact, LONG).unwrap();
                buffer = exact.to_vec();
                meta
            };
            assert_eq!((meta.seq, meta.lost, meta.len, meta.type_id, meta.tag), (seq, 0, 300, 1, seq));
            assert!(is_whole(&buffer, seq));
            assert_eq!(kind(subscriber.try_recv_into(&mut buffer)), ErrorKind::Empty);
            assert_eq!(kind(subscriber.recv_into_timeout(&mut buffer, SHORT / 10)), ErrorKind::TimedOut);
            let seq = send(&mut publisher, 0);
            let meta = subscriber.recv_into(&mut buffer).unwrap();
            assert_eq!((meta.seq, meta.lost, buffer.len()), (seq, 0, 0));
        }
    }
}

#[test]
fn tensors_in_place_and_copied() {
    let dir = Dir::new();
    for align in [32, 64, 4096] {
        for may_eject in [false, true] {
            let name = dir.at(&format!("topic-{align}-{may_eject}"));
            let mut publisher = create(&name, 1 << 15).align(align).may_eject(may_eject).publisher().unwrap();
            let mut subscribers = POLICIES.map(|policy| Topic::open(&name).policy(policy).subscriber().unwrap());
            for round in 0..40u64 {
                // Moves on by other lengths, so that tensors begin everywhere.
                send(&mut publisher, 13 * round as usize);
                let data: Vec<u8> = (0..24).map(|byte| byte + round as u8).collect();
                publisher.send_tensor_tagged(Dtype::F64, &[3], round, &data).unwrap();
                for subscriber in &mut subscribers {
                    if subscriber.policy() != Policy::Latest {
                        assert_eq!(subscriber.recv_timeout(LONG).unwrap().type_id(), 1);
                    }
                    let received = subscriber.recv_timeout(LONG).unwrap();
                    assert_eq!((received.seq(), received.tag()), (2 * round + 2, round));
                    let tensor = received.tensor().unwrap();
                    assert_eq!((tensor.shape(), tensor.data()), (&[3][..], &data[..]));
                    assert_eq!(tensor.as_slice::<f64>().unwrap().len(), 3);
                    assert_eq!(received.as_ptr().addr() % align as usize, 0);
                    drop(received);
                    assert_eq!(subscriber.latest().unwrap().tensor().unwrap().data(), &data[..]);
                }
            }
        }
    }
}

#[test]
fn slots_commits_and_flushes() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = create(&name, 4096).publisher().unwrap();
    let mut reliable = Topic::open(&name).subscriber().unwrap();
    for round in 0..100u64 {
        let base = round * 6;
        // Dropped: nothing, and no number is used up.
        publisher.reserve(500).unwrap().fill(9);
        std::mem::forget(publisher.reserve(20).unwrap());
        let mut slot = publisher.reserve(100).unwrap().with_type_id(3).with_tag(base + 1);
        slot[..10].copy_from_slice(&message(base + 1, 10));
        slot.commit_unflushed(10).unwrap();
        assert_eq!((kind(reliable.try_recv()), publisher.seq()), (ErrorKind::Empty, base));
        let mut slot = publisher.reserve(50).unwrap();
        slot.copy_from_slice(&message(base + 2, 50));
        slot.with_tag(base + 2).commit(50).unwrap();
        assert_eq!(publisher.seq(), base + 2);
        receive_to(&mut reliable, base + 1, base + 2);

        let mut batch = publisher.batch();
        for n in [3, 4] {
            batch.write(1, base + n, 33, |to| to.copy_from_slice(&message(base + n, 33))).unwrap();
        }
        if round % 3 == 0 {
            // Forgotten: what it has written is as if it never was.
            std::mem::forget(batch);
            assert_eq!(kind(reliable.try_recv()), ErrorKind::Empty);
            publisher.flush().unwrap();
            assert_eq!(kind(reliable.try_recv()), ErrorKind::Empty);
            for n in [3, 4] {
                publisher.send_tagged(1, base + n, &message(base + n, 33)).unwrap();
            }
        } else {
            drop(batch);
        }
        receive_to(&mut reliable, base + 3, base + 4);
        let text = message(base + 5, 64);
        let pieces = [IoSlice::new(&text[..10]), IoSlice::new(&[]), IoSlice::new(&text[10..])];
        publisher.send_vectored(1, base + 5, &pieces).unwrap();
        receive_to(&mut reliable, base + 5, base + 5);
        assert_eq!(publisher.last_tag(), Some(base + 5));
        publisher.send_pod(4, &round).unwrap();
        assert_eq!(*reliable.recv().unwrap().as_pod::<u64>().unwrap(), round);
        assert_eq!(publisher.last_tag(), Some(0));
    }
}

#[test]
fn the_longest_message_and_one_more_byte() {
    let dir = Dir::new();
    for (i, capacity) in [4096, 1 << 14, 1 << 17].into_iter().enumerate() {
        let name = dir.at(&format!("topic{i}"));
        let mut publisher = create(&name, capacity).publisher().unwrap();
        let longest = capacity as usize / 2 - 32;
        assert_eq!(publisher.max_message_len(), longest);
        let mut reliable = Topic::open(&name).subscriber().unwrap();
        let mut latest = Topic::open(&name).latest().subscriber().unwrap();
        for len in [longest + 1, capacity as usize] {
            let refused = publisher.send(0, &vec![0; len]).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::TooLarge);
            let text = refused.to_string();
            assert!(text.contains("this topic of") && text.contains(&longest.to_string()), "{text}");
            assert_eq!(kind(publisher.try_reserve(len)), ErrorKind::TooLarge);
        }
        for round in 0..20u64 {
            let seq = send(&mut publisher, longest);
            assert_eq!(receive(&mut reliable), (seq, 0));
            assert_eq!(latest.latest().unwrap().len(), longest);
            // Moves on, so that the next one begins elsewhere.
            let seq = send(&mut publisher, 40 * round as usize);
            assert_eq!(receive(&mut reliable), (seq, 0));
        }
    }
}

#[test]
fn how_much_there_is_and_how_far_behind_one_is() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = create(&name, 4096).publisher().unwrap();
    let mut reliable = Topic::open(&name).subscriber().unwrap();
    let lossy = Topic::open(&name).lossy().subscriber().unwrap();
    assert_eq!((reliable.len(), lossy.len(), publisher.len()), (0, 0, 0));
    assert_eq!((reliable.lag(), lossy.lag()), (Lag { bytes: 0, messages: 0 }, Lag { bytes: 0, messages: 0 }));
    send_all(&mut publisher, 5, &[32]);
    for subscriber in [&reliable, &lossy] {
        assert_eq!(subscriber.len(), 5 * 64);
        assert_eq!(subscriber.lag(), Lag { bytes: 5 * 64, messages: 5 });
    }
    assert_eq!(publisher.len(), 5 * 64);
    let infos = publisher.subscribers();
    let info = infos.iter().find(|info| info.policy == Policy::Reliable).unwrap();
    assert_eq!(info.lag, Some(Lag { bytes: 5 * 64, messages: 5 }));
    assert!(info.alive && !info.durable && !info.ejected && info.label.is_empty() && info.blocks_for.is_none());
    let shown = infos.iter().find(|info| info.policy == Policy::Lossy).unwrap();
    assert_eq!((shown.lag, shown.alive), (None, true));
    receive_to(&mut reliable, 1, 2);
    assert_eq!(reliable.lag(), Lag { bytes: 3 * 64, messages: 3 });
    {
        let held = reliable.recv().unwrap();
        assert_eq!(held.seq(), 3);
    }
    assert_eq!(publisher.len(), 2 * 64);
    receive_to(&mut reliable, 4, 5);
    assert!(reliable.is_empty() && publisher.is_empty());
    assert_eq!(reliable.lag(), Lag { bytes: 0, messages: 0 });
    // A lossy one that was lapped is a capacity behind at most.
    reliable.close().unwrap();
    let capacity = rustix::param::page_size();
    let laps = 8 * capacity as u64 / 64;
    send_all(&mut publisher, laps, &[32]);
    assert_eq!(lossy.len(), capacity);
    assert_eq!(lossy.lag().messages, 5 + laps);
    assert_eq!(publisher.len(), 0, "nobody has anything to release");
}

#[test]
fn skipping_to_the_newest_one_is_no_loss() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = create(&name, 4096).publisher().unwrap();
    let mut reliable = Topic::open(&name).subscriber().unwrap();
    let mut lossy = Topic::open(&name).lossy().subscriber().unwrap();
    for subscriber in [&mut reliable, &mut lossy] {
        assert_eq!(subscriber.skip_to_newest().unwrap(), 0, "nothing is there");
    }
    for round in 0..100u64 {
        let base = publisher.seq();
        send_all(&mut publisher, 10, &[round as usize, 20]);
        for subscriber in [&mut reliable, &mut lossy] {
            assert_eq!(receive(subscriber), (base + 1, 0));
            assert_eq!(subscriber.skip_to_newest().unwrap(), 8);
            assert_eq!(subscriber.skip_to_newest().unwrap(), 0);
            assert_eq!(receive(subscriber), (base + 10, 0));
            assert_eq!(subscriber.skip_to_newest().unwrap(), 0, "it was received");
            assert_eq!(kind(subscriber.try_recv()), ErrorKind::Empty);
            assert_eq!(subscriber.lost(), 0);
        }
        assert!(publisher.is_empty());
    }
    // After laps it leaves out what was overwritten too.
    drop(reliable);
    let base = publisher.seq();
    send_all(&mut publisher, 1000, &[100]);
    assert_eq!(lossy.skip_to_newest().unwrap(), 999);
    assert_eq!(receive(&mut lossy), (base + 1000, 0));
    assert_eq!(lossy.lost(), 0);

    let mut latest = Topic::open(&name).latest().subscriber().unwrap();
    let refused = latest.skip_to_newest().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
}

#[test]
fn the_newest_value_again_and_again_or_a_newer_one() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = create(&name, 4096).publisher().unwrap();
    let mut latest = Topic::open(&name).latest().subscriber().unwrap();
    let mut reliable = Topic::open(&name).subscriber().unwrap();
    let mut buffer = Vec::new();
    assert_eq!(kind(latest.latest()), ErrorKind::Empty);
    assert_eq!(kind(latest.latest_into(&mut buffer)), ErrorKind::Empty);
    assert_eq!(kind(latest.latest_into_slice(&mut [0; 8])), ErrorKind::Empty);
    assert_eq!(kind(latest.wait_newer_timeout(SHORT)), ErrorKind::TimedOut);
    for round in 1..200u64 {
        let seq = send(&mut publisher, round as usize % 700);
        for _ in 0..3 {
            let newest = latest.latest().unwrap();
            assert_eq!((newest.seq(), newest.lost()), (seq, 0));
            assert!(is_whole(&newest, seq));
        }
        // It was seen, so it is not newer.
        assert_eq!(kind(latest.try_recv()), ErrorKind::Empty);
        let seq = send(&mut publisher, 24);
        let newer = latest.wait_newer().unwrap();
        assert_eq!(newer.seq(), seq);
        drop(newer);
        assert_eq!(kind(latest.wait_newer_timeout(Duration::ZERO)), ErrorKind::TimedOut);
        let mut exact = [0; 24];
        assert_eq!(latest.latest_into_slice(&mut exact).unwrap().seq, seq);
        assert!(is_whole(&exact, seq));
        assert_eq!(latest.latest_into(&mut buffer).unwrap().seq, seq);
        assert!(is_whole(&buffer, seq));
        // Of a reliable one it leaves the order alone.
        assert_eq!(reliable.latest().unwrap().seq(), seq);
        receive_to(&mut reliable, seq - 1, seq);
        assert_eq!(kind(reliable.wait_newer()), ErrorKind::Unsupported);
        assert_eq!(kind(reliable.wait_newer_timeout(SHORT)), ErrorKind::Unsupported);
    }
    // A wait gives the newest of many.
    send_all(&mut publisher, 20, &[10]);
    let newest = publisher.seq();
    assert_eq!(latest.recv().unwrap().seq(), newest);
    assert_eq!(kind(latest.try_recv()), ErrorKind::Empty);
}

#[test]
fn known_losses_and_times() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = create(&name, 4096).timestamps(true).publisher().unwrap();
    let mut reliable = Topic::open(&name).subscriber().unwrap();
    let mut lossy = Topic::open(&name).lossy().subscriber().unwrap();
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    publisher.send(0, b"").unwrap();
    publisher.skip_seq(0).unwrap();
    publisher.skip_seq(6).unwrap();
    publisher.skip_seq(1).unwrap();
    let before = now();
    publisher.send(0, b"").unwrap();
    let after = now();
    for subscriber in [&mut reliable, &mut lossy] {
        assert_eq!(subscriber.recv().unwrap().seq(), 1);
        let second = subscriber.recv().unwrap();
        assert_eq!((second.seq(), second.lost()), (9, 7));
        assert!((before..=after).contains(&second.time()), "{before} {} {after}", second.time());
        drop(second);
        assert_eq!(subscriber.lost(), 7);
    }
    assert_eq!(publisher.seq(), 9);
    let refused = publisher.skip_seq(u64::MAX).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    assert_eq!(kind(publisher.skip_seq(1 << 63)), ErrorKind::InvalidArgument);
    publisher.send(0, b"").unwrap();
    assert_eq!(reliable.recv().unwrap().seq(), 10);
    drop(publisher);
    let mut publisher = Topic::open(&name).publisher().unwrap();
    publisher.send(0, b"").unwrap();
    let last = reliable.recv().unwrap();
    assert_eq!((last.seq(), last.time()), (11, 0), "another publisher, which gives no times");
}

#[test]
fn a_forgotten_message_is_released_by_the_next_call() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = create(&name, 4096).publisher().unwrap();
    let mut reliable = Topic::open(&name).subscriber().unwrap();
    let mut lossy = Topic::open(&name).lossy().subscriber().unwrap();
    for round in 0..50u64 {
        let base = publisher.seq();
        send_all(&mut publisher, 3, &[1000]);
        for subscriber in [&mut reliable, &mut lossy] {
            std::mem::forget(subscriber.recv().unwrap());
            std::mem::forget(subscriber.recv_batch(1).unwrap());
            assert_eq!(receive(subscriber), (base + 3, 0), "round {round}");
        }
        assert!(publisher.is_empty());
    }
}
