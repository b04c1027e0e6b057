use std::os::fd::AsFd;
use std::path::PathBuf;

use super::*;
use crate::facts::BYTE_PUBLISHER;
use crate::layout::{Kind, SLOT_DURABLE, SLOT_GATING, slot_state};
use crate::segment::named::{Named, Request, named};
use crate::segment::options::{Intent, SegmentOptions};
use crate::segment::subscribers::SubscribersMap;
use crate::segment::{Spec, TopicGeometry};
use crate::sys::fs;
use crate::sys::mem::{Access, page_size};

const BLOCK: u64 = 0x400;

struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        Self(PathBuf::from(format!("/dev/shm/ramway-unit-{}-slots-{name}", std::process::id())))
    }

    fn open(&self, role_byte: Option<u64>, access: Access, options: &SegmentOptions) -> Result<Named> {
        let spec = Spec::topic(8192, 32, 4, 0, page_size())?.named().persistent(options.persistent);
        named(
            self.0.as_os_str(),
            &Request {
                intent: if access == Access::ReadOnly { Intent::Open } else { Intent::OpenOrCreate },
                kind: Kind::Topic,
                spec: Some(spec),
                check: &|_| Ok(()),
                role_byte,
                access,
                options,
                go_on: &|| true,
            },
        )
    }

    fn subscriber(&self) -> Named {
        self.open(None, Access::ReadWrite, &SegmentOptions::default()).unwrap()
    }

    fn publisher(&self) -> Named {
        self.open(Some(BYTE_PUBLISHER), Access::ReadWrite, &SegmentOptions::default()).unwrap()
    }

    fn is_there(&self) -> bool {
        self.0.exists()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn put(named: &Named, at: u64, bytes: &[u8]) {
    fs::write_at(named.file.as_fd(), at, bytes).unwrap();
}

fn geometry(named: &Named) -> TopicGeometry {
    named.valid.topic.unwrap()
}

/// How the pages at an address are mapped: `r--s`, `rw-s`.
fn rights(address: usize) -> String {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let hex = |text: &str| usize::from_str_radix(text, 16).unwrap();
    let line = maps.lines().find(|line| {
        let (start, end) = line.split(' ').next().unwrap().split_once('-').unwrap();
        (hex(start)..hex(end)).contains(&address)
    });
    line.unwrap().split(' ').nth(1).unwrap().to_owned()
}

#[test]
fn a_slot_has_one_holder_until_it_goes() {
    let place = Place::new("holder");
    let (mut a, mut b) = (place.subscriber(), place.subscriber());
    assert!(a.link.try_slot(0).unwrap() && !b.link.try_slot(0).unwrap() && b.link.try_slot(3).unwrap());
    assert_eq!((a.link.slot, b.link.slot), (Some(0), Some(3)));
    assert!(a.link.slot_held_by_another(3) && b.link.slot_held_by_another(0));
    assert!(!a.link.slot_held_by_another(0), "one's own");
    assert!(!a.link.slot_held_by_another(1), "nobody's");
    // Another slot's number changes nothing.
    a.link.release_slot(3);
    assert!(a.link.slot == Some(0) && b.link.slot_held_by_another(0));
    a.link.release_slot(0);
    assert!(a.link.slot.is_none() && !b.link.slot_held_by_another(0));
    assert!(a.link.try_slot(1).unwrap());
    drop(a);
    assert!(!b.link.slot_held_by_another(1));
    drop(b);
    assert!(!place.is_there(), "the last one out");
}

#[test]
fn a_lock_that_a_reader_can_take_is_no_life() {
    let place = Place::new("shared");
    let mut a = place.subscriber();
    let stranger = std::fs::File::open(&place.0).unwrap();
    for byte in [BYTE_PUBLISHER, byte(2)] {
        assert!(lock::try_lock(stranger.as_fd(), byte, Mode::Shared).unwrap());
    }
    assert!(!a.link.slot_held_by_another(2) && !a.link.role_held_by_another(BYTE_PUBLISHER));
    assert!(!a.link.try_slot(2).unwrap(), "it is in the way all the same");
    drop(stranger);
    assert!(a.link.try_slot(2).unwrap());
}

#[test]
fn one_publisher_and_subscribers_beside_it() {
    let place = Place::new("publisher");
    let publisher = place.publisher();
    let subscriber = place.subscriber();
    assert!(
        subscriber.link.role_held_by_another(BYTE_PUBLISHER) && !publisher.link.role_held_by_another(BYTE_PUBLISHER)
    );
    let Err(error) = place.open(Some(BYTE_PUBLISHER), Access::ReadWrite, &SegmentOptions::default()) else {
        panic!("two publishers");
    };
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert!(error.to_string().contains("the topic has a publisher already"), "{error}");
    drop(publisher);
    assert!(!subscriber.link.role_held_by_another(BYTE_PUBLISHER));
    let _successor = place.publisher();
}

/// A subscriber's mapping of the header page cannot be written; a reader needs no right to write at all.
#[test]
fn who_maps_what_for_writing() {
    let place = Place::new("rights");
    let (publisher, subscriber) = (place.publisher(), place.subscriber());
    let reader = place.open(None, Access::ReadOnly, &SegmentOptions::default()).unwrap();
    let header = |named: &Named| rights(named.header.topic_block().as_ptr() as usize);
    assert_eq!([header(&publisher), header(&subscriber), header(&reader)], ["rw-s", "r--s", "r--s"]);
    let area = |named: &Named, access| {
        let area = SubscribersMap::map(named.file.as_fd(), &geometry(named), access).unwrap();
        rights(area.head().as_ptr() as usize)
    };
    assert_eq!(area(&subscriber, Access::ReadWrite), "rw-s");
    assert_eq!(area(&reader, Access::ReadOnly), "r--s");
}

#[test]
fn joins_with_a_label_exclude_each_other() {
    let place = Place::new("join");
    let (mut a, mut b) = (place.subscriber(), place.subscriber());
    a.link.lock_join(Duration::ZERO, &mut || true).unwrap();
    assert_eq!(b.link.lock_join(Duration::ZERO, &mut || true).unwrap_err().kind(), ErrorKind::Busy);
    let stopped = b.link.lock_join(Duration::from_secs(600), &mut || false).unwrap_err();
    assert_eq!(stopped.kind(), ErrorKind::Interrupted);
    // Without a label nobody waits for it.
    assert!(b.link.try_slot(0).unwrap());
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| b.link.lock_join(Duration::from_secs(600), &mut || true));
        std::thread::sleep(Duration::from_millis(20));
        a.link.unlock_join();
        waiting.join().unwrap().unwrap();
    });
    assert_eq!(a.link.lock_join(Duration::ZERO, &mut || true).unwrap_err().kind(), ErrorKind::Busy);
    drop(b);
    a.link.lock_join(Duration::ZERO, &mut || true).unwrap();
}

/// What the last one out leaves, and what it takes with it.
#[test]
fn only_what_a_durable_subscriber_waits_for_keeps_a_topic() {
    let positions = |tail: u64, last: u64, claim: u64| {
        move |named: &Named| {
            put(named, BLOCK + 0x80, &[tail.to_ne_bytes(), last.to_ne_bytes()].concat());
            put(named, BLOCK + 0x100, &claim.to_ne_bytes());
        }
    };
    let slot = |cursor: u64, flags: u64, close_seen: u32| {
        move |named: &Named| {
            let at = geometry(named).subs_offset + 0x1000 + 2 * 128;
            put(named, at, &[cursor.to_ne_bytes(), slot_state(7, flags).to_ne_bytes()].concat());
            put(named, at + 0x14, &close_seen.to_ne_bytes());
            put(named, at + 0x40, b"log");
        }
    };
    let closed = |named: &Named| put(named, BLOCK + 0x204, &[4u32.to_ne_bytes(), 9u32.to_ne_bytes()].concat());
    let frame = |named: &Named| put(named, geometry(named).data_offset, &5u32.to_ne_bytes());
    let durable = SLOT_GATING | SLOT_DURABLE;
    type Change<'a> = Box<dyn Fn(&Named) + 'a>;
    let rows: Vec<(&str, Vec<Change<'_>>, Option<&str>)> = vec![
        ("new", vec![], None),
        ("history", vec![Box::new(positions(64, 0, 512)), Box::new(frame)], None),
        ("a dead subscriber without a label", vec![Box::new(positions(64, 0, 512)), Box::new(slot(0, 3, 0))], None),
        ("a close, and nobody is durable", vec![Box::new(closed)], None),
        (
            "durable and behind",
            vec![Box::new(positions(64, 0, 512)), Box::new(frame), Box::new(slot(0, durable, 0))],
            Some("the durable subscriber 'log' has 1 undelivered messages (5 bytes)"),
        ),
        (
            "durable and behind, the claim beyond what it lets the publisher write",
            vec![
                Box::new(positions(576, 512, 4096 + 256)),
                Box::new(|named: &Named| {
                    put(named, geometry(named).data_offset, &480u32.to_ne_bytes());
                    put(named, geometry(named).data_offset + 512, &5u32.to_ne_bytes());
                }),
                Box::new(slot(0, durable, 0)),
            ],
            Some("the durable subscriber 'log' has 2 undelivered messages (485 bytes)"),
        ),
        (
            "durable, ejected and overtaken",
            vec![Box::new(positions(8192 + 64, 8192, 8192 + 512)), Box::new(slot(0, SLOT_DURABLE | 8, 0))],
            Some("of which some are lost"),
        ),
        ("durable and done", vec![Box::new(positions(64, 0, 512)), Box::new(slot(64, durable, 0))], None),
        (
            "durable and without the close",
            vec![Box::new(closed), Box::new(slot(0, durable, 8))],
            Some("end of a stream that the durable subscriber 'log' has not seen"),
        ),
        ("durable and with it", vec![Box::new(closed), Box::new(slot(0, durable, 9))], None),
        ("positions that cannot be", vec![Box::new(positions(64, 96, 512))], Some("it is damaged")),
    ];
    for (name, changes, kept) in rows {
        let place = Place::new("keep");
        let last = place.subscriber();
        for change in &changes {
            change(&last);
        }
        drop(last);
        assert_eq!(place.is_there(), kept.is_some(), "{name}");
        let Some(text) = kept else { continue };
        let cleaned = crate::survey::clean_one(&place.0, &crate::survey::CleanOptions::default()).unwrap();
        let crate::survey::Outcome::Kept(why) = cleaned else { panic!("{name}: {cleaned:?}") };
        assert!(why.contains(text), "{name}: {why}");
    }
    let place = Place::new("keep-persistent");
    drop(place.open(None, Access::ReadWrite, &SegmentOptions { persistent: true, ..Default::default() }).unwrap());
    assert!(place.is_there());
}
