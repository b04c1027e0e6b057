//! Slots and labels: who has them is said, and nobody is kept out by those whom nobody waits for, or by those who have left.

mod support;

use ramway::{ErrorKind, Policy, Subscriber, Topic};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use support::topic::{ACTIVE, DURABLE, GATING, Memory, SLOT_STATE, create, receive, send, slot};
use support::{Dir, LONG, Peer, helper_role, say};

#[test]
fn helper() {
    let Some(role) = helper_role() else { return };
    match role.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        // Joins and leaves, durable or not, until it is killed.
        ["joins-and-leaves", name] => {
            say("ready");
            for n in 0.. {
                let joined = Topic::open(name).label("x").durable(n % 3 != 0).timeout(LONG).subscriber().unwrap();
                if n % 5 == 0 { joined.unsubscribe().unwrap() } else { drop(joined) }
            }
        }
        ["comes-and-goes", name] => {
            say("ready");
            loop {
                match Topic::open(name).subscriber() {
                    Ok(subscriber) => drop(subscriber),
                    Err(e) => assert_eq!(e.kind(), ErrorKind::Busy, "{e}"),
                }
            }
        }
        _ => panic!("{role:?}"),
    }
}

fn busy(result: ramway::Result<Subscriber>) -> String {
    let error = result.map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    error.to_string()
}

#[test]
fn who_has_the_slots_is_said() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let _publisher = create(&name, 4096).slots(5).publisher().unwrap();
    let open = || Topic::open(&name);
    let _lossy = open().lossy().label("viewer").subscriber().unwrap();
    let _latest = open().latest().subscriber().unwrap();
    let _reliable = open().label("\x1b[2Jcontrol").subscriber().unwrap();
    let _unnamed = open().subscriber().unwrap();
    drop(open().label("recorder").durable(true).subscriber().unwrap());
    let text = busy(open().subscriber());
    for part in [
        &name,
        "all 5 slots",
        "2 by reliable subscribers",
        "1 for durable subscribers that are away",
        "2 by lossy or latest subscribers",
        "'viewer'",
        "'recorder'",
        "'\\u{1b}[2Jcontrol'",
        "unsubscribe",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // A label that is taken.
    let text = busy(open().label("\x1b[2Jcontrol").subscriber());
    assert!(text.contains("'\\u{1b}[2Jcontrol' is attached already") && text.contains(&name), "{text}");
    open().label("recorder").durable(true).subscriber().unwrap().unsubscribe().unwrap();

    // However many there are.
    let name = dir.at("many");
    let _publisher = create(&name, 4096).slots(100).publisher().unwrap();
    let all: Vec<_> = (0..100).map(|n| Topic::open(&name).label(format!("{n:064}")).subscriber().unwrap()).collect();
    let text = busy(Topic::open(&name).subscriber());
    assert!(text.contains("100 by reliable subscribers") && text.contains("92 more") && text.len() < 1200, "{text}");
    drop(all);
}

#[test]
fn a_label_of_one_that_nobody_waits_for_keeps_nobody_out() {
    let dir = Dir::new();
    for policy in [Policy::Lossy, Policy::Latest] {
        let name = dir.at(&format!("{policy:?}"));
        let mut publisher = create(&name, 4096).slots(4).publisher().unwrap();
        let open = || Topic::open(&name).label("x");
        let viewers = [(); 4].map(|()| open().policy(policy).subscriber().unwrap());
        // Two of them are seen by others; each knows its own label.
        assert!(viewers.iter().all(|viewer| viewer.label().as_deref() == Some("x")));
        assert_eq!(publisher.subscribers().len(), 2);
        let mut recorder = open().durable(true).subscriber().unwrap();
        busy(open().durable(true).subscriber());
        busy(open().subscriber());
        let seq = send(&mut publisher, 10);
        assert_eq!(receive(&mut recorder), (seq, 0));
        send(&mut publisher, 10);
        drop(recorder);
        let _another = open().policy(policy).subscriber().unwrap();
        let mut recorder = open().durable(true).subscriber().unwrap();
        assert_eq!(receive(&mut recorder), (seq + 1, 0), "it goes on where it was");
        recorder.unsubscribe().unwrap();
        assert_eq!(Topic::open(&name).subscriber().unwrap().label(), None);
    }
}

/// Its slot may be taken just then by somebody without a label.
#[test]
fn a_label_that_was_closed_is_free_at_once() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let _publisher = create(&name, 4096).slots(8).publisher().unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                drop(Topic::open(&name).subscriber().unwrap());
            }
        });
        let until = Instant::now() + Duration::from_millis(700);
        let mut joins = 0;
        while Instant::now() < until {
            let joined = Topic::open(&name).label("x").durable(joins % 2 == 0).subscriber();
            let joined = joined.unwrap_or_else(|e| panic!("after {joins} joins: {e}"));
            if joins % 4 == 0 {
                joined.unsubscribe().unwrap()
            } else {
                drop(joined)
            }
            joins += 1;
        }
        stop.store(true, Ordering::Relaxed);
    });
}

/// Whoever is killed at whichever instant, and whoever tries slots meanwhile: a label has one slot.
#[test]
fn a_label_never_has_two_slots() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = create(&name, 4096).slots(6).publisher().unwrap();
    let mut others: Vec<_> = (0..2).map(|_| Peer::start(&["comes-and-goes", &name])).collect();
    others.iter_mut().for_each(|other| other.expect("ready"));
    let memory = Memory::map(&name);
    let mut seed = 11;
    for round in 0..30 {
        let mut pair = [(); 2].map(|()| Peer::start(&["joins-and-leaves", &name]));
        pair.iter_mut().for_each(|peer| peer.expect("ready"));
        support::readiness::jitter(&mut seed);
        pair.into_iter().for_each(Peer::kill);
        let durable = (0..6).filter(|i| memory.u64(slot(*i) + SLOT_STATE).load(Ordering::SeqCst) & DURABLE != 0);
        assert!(durable.count() <= 1, "round {round}: {:?}", publisher.subscribers());
        // Whoever comes next takes it up, or begins it; and ends it for good.
        let next = Topic::open(&name).label("x").durable(true).timeout(LONG).subscriber().unwrap();
        let state = |i| memory.u64(slot(i) + SLOT_STATE).load(Ordering::SeqCst);
        assert_eq!((0..6).filter(|i| state(*i) & DURABLE != 0).count(), 1);
        next.unsubscribe().unwrap();
        assert!((0..6).all(|i| state(i) & DURABLE == 0));
        send(&mut publisher, 10);
    }
    others.into_iter().for_each(Peer::kill);
}

/// The instant in which another subscriber has locked a slot to look at it, made long: the durable one waits for it instead of
/// taking a second slot.
#[test]
fn a_slot_that_somebody_looks_at_is_tried_again() {
    let dir = Dir::new();
    let name = dir.at("topic");
    let mut publisher = create(&name, 4096).slots(3).publisher().unwrap();
    let open = || Topic::open(&name).label("x").durable(true);
    drop(open().subscriber().unwrap());
    let seq = send(&mut publisher, 10);
    let file = std::fs::OpenOptions::new().read(true).write(true).open(&name).unwrap();
    support::lock_byte(&file, 16, libc::F_WRLCK);
    // For good: then it is in use, and no other slot is taken for the label.
    busy(open().subscriber());
    std::thread::scope(|scope| {
        let joins = scope.spawn(|| open().timeout(LONG).subscriber().unwrap());
        std::thread::sleep(Duration::from_millis(20));
        support::lock_byte(&file, 16, libc::F_UNLCK);
        let mut resumed = joins.join().unwrap();
        assert_eq!(receive(&mut resumed), (seq, 0));
        resumed.unsubscribe().unwrap();
    });
    // The slot of one that has closed still shows its label when somebody else takes it, who writes another one there. Until
    // then the label is free all the same.
    support::lock_byte(&file, 16, libc::F_WRLCK);
    open().subscriber().unwrap().unsubscribe().unwrap();
    support::lock_byte(&file, 16, libc::F_UNLCK);
    // The label of one that was killed is not the next one's in that slot.
    let memory = Memory::map(&name);
    memory.u64(slot(0) + SLOT_STATE).store(7 << 32 | ACTIVE | GATING, Ordering::SeqCst);
    let next = open().subscriber().unwrap();
    assert_eq!(publisher.subscribers()[0].epoch, 8);
    next.unsubscribe().unwrap();
}
