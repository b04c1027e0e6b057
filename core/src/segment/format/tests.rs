use super::*;
use crate::layout::{TOPIC_CHUNKS, TOPIC_LOSSY_ONLY, TOPIC_MAY_EJECT, TopicBlock, max_topic_message_len};
use crate::segment::words::{RingWords, TopicWords};

fn ring_page() -> (HeaderPage, u64) {
    let spec = Spec::ring(1 << 16, 16, page_size()).unwrap().named();
    (format(&spec), spec.size)
}

/// A small generator with a fixed seed (xorshift): a failure is the same each time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[test]
fn what_is_formatted_is_valid_and_empty() {
    let granule = page_size();
    let specs = [
        Spec::ring(1, 16, granule).unwrap(),
        Spec::ring(100_000, 4096, granule).unwrap(),
        Spec::ring(1 << 20, 64, 2 << 20).unwrap(),
        Spec::bus(1 << 16, 0, 16, granule).unwrap(),
        Spec::bus(0, 1 << 20, 32, granule).unwrap(),
        Spec::bus(5000, 100_000, 16, granule).unwrap(),
        Spec::region(1, granule).unwrap(),
        Spec::region(1 << 21, 2 << 20).unwrap(),
        Spec::listener().persistent(true),
        Spec::topic(1, 32, 1, 0, granule).unwrap(),
        Spec::topic(1, 4096, 1024, TOPIC_LOSSY_ONLY, granule).unwrap(),
        Spec::topic(100_000, 64, 32, TOPIC_MAY_EJECT, 2 << 20).unwrap(),
    ];
    for spec in specs {
        let page = format(&spec);
        let valid = validate(&page, spec.size).unwrap();
        assert_eq!((valid.header.kind, valid.header.size), (spec.kind, spec.size));
        assert_eq!(valid.header.is_persistent(), spec.flags != 0);
        assert!(!valid.header.is_of_another_boot());
        for (i, ring) in valid.rings.iter().enumerate() {
            let Some(ring) = ring else { continue };
            let words = RingWords::read(&page, i);
            assert_eq!((words.tail, words.head), (first_position(ring.align), first_position(ring.align)));
            assert!(!words.has_unseen_close());
        }
        assert_eq!(valid.topic, spec.topic);
        assert_eq!(valid.header.version, (1, u16::from(spec.kind == Kind::Topic)));
        let Some(topic) = valid.topic else { continue };
        let first = u64::from(topic.align) - 32;
        let words = TopicWords::read(&page);
        assert_eq!((words.tail, words.last, words.claim, words.eject_after), (first, first, first, 0));
        assert!(words.agree(&topic) && !words.has_overtaken(first, &topic));
        let starts = BLOCK_OFFSETS[0] + offset_of!(TopicBlock, starts);
        assert!((0..TOPIC_CHUNKS as usize).all(|i| page.u64(starts + 8 * i) == first));
    }
}

/// Each part of a topic begins on the creator's page, in their order, and a frame fits twice.
#[test]
fn the_parts_of_a_topic() {
    for granule in [page_size(), 2 << 20] {
        let spec = Spec::topic(1, 4096, 1024, 0, granule).unwrap();
        let topic = spec.topic.unwrap();
        assert_eq!(topic.subs_offset, granule as u64);
        assert!(topic.data_offset >= topic.subs_offset + 0x1000 + 128 * 1024);
        assert!(topic.data_offset.is_multiple_of(granule as u64) && topic.capacity >= 8192);
        assert_eq!(spec.size, topic.data_offset + topic.capacity);
    }
    assert_eq!(max_topic_message_len(8192), 4096 - 32);
    assert_eq!(max_topic_message_len(1 << 32), (1 << 31) - 33);
    assert_eq!(max_topic_message_len(1 << 31), (1 << 30) - 32);
    for (align, slots) in [(0, 32), (16, 32), (48, 32), (8192, 32), (32, 0), (32, 1025), (32, u32::MAX)] {
        let error = Spec::topic(4096, align, slots, 0, 4096).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }
    for huge in [(1 << 62) + 1, u64::MAX] {
        assert_eq!(Spec::topic(huge, 32, 32, 0, 4096).unwrap_err().kind(), ErrorKind::NoSpace);
    }
}

/// What docs/ABI.md shows of a new topic.
#[test]
fn a_new_topic_is_as_the_page_shows() {
    const PAGE: &str = include_str!("../../../../docs/ABI.md");
    let page = format(&Spec::topic(4096, 32, 32, 0, 4096).unwrap().named());
    let shown = PAGE.split_once("```hex topic header\n").unwrap().1.split_once("```").unwrap().0;
    for line in shown.lines() {
        let mut words = line.split_whitespace();
        let at = usize::from_str_radix(words.next().unwrap(), 16).unwrap();
        for (i, word) in words.enumerate() {
            if let Ok(byte) = u8::from_str_radix(word, 16) {
                assert_eq!(page.0[at + i], byte, "byte {:#x}, in the line '{line}'", at + i);
            }
        }
    }
}

/// Every row of section 16 about a topic, and which of two that fail is named.
#[test]
fn a_topic_whose_numbers_cannot_be() {
    use ErrorKind::{AbiMismatch, Corrupt};
    let spec = Spec::topic(1 << 14, 64, 32, 0, page_size()).unwrap();
    let topic = spec.topic.unwrap();
    let at = |field: usize| BLOCK_OFFSETS[0] + field;
    let (data_offset, capacity) = (at(0), at(8));
    let (align, slots, flags, subs) = (at(0x18), at(0x20), at(0x24), at(0x28));
    type Change = (usize, Vec<u8>);
    let number = |at: usize, value: u64| -> Change { (at, value.to_ne_bytes().to_vec()) };
    let short = |at: usize, value: u32| -> Change { (at, value.to_ne_bytes().to_vec()) };
    let rows: Vec<(&str, Vec<Change>, ErrorKind)> = vec![
        ("data in the header page", vec![number(data_offset, 0)], Corrupt),
        ("data not on a page", vec![number(data_offset, topic.data_offset + 64)], Corrupt),
        ("data past the end", vec![number(data_offset, topic.data_offset + 4096)], Corrupt),
        ("data that overflows", vec![number(data_offset, u64::MAX - 4095)], Corrupt),
        ("no capacity", vec![number(capacity, 0)], Corrupt),
        ("capacity of three pages", vec![number(capacity, 3 * 4096)], Corrupt),
        ("capacity past the end", vec![number(capacity, 1 << 15)], Corrupt),
        ("align 0", vec![short(align, 0)], Corrupt),
        ("align of a ring", vec![short(align, 16)], Corrupt),
        ("align 96", vec![short(align, 96)], Corrupt),
        ("align 8192", vec![short(align, 8192)], Corrupt),
        ("align more than half", vec![number(capacity, 4096), short(align, 4096)], Corrupt),
        ("no slots", vec![short(slots, 0)], Corrupt),
        ("1025 slots", vec![short(slots, 1025)], Corrupt),
        ("slots over the data", vec![short(slots, 1024)], Corrupt),
        ("slots of garbage", vec![short(slots, u32::MAX)], Corrupt),
        ("area in the header page", vec![number(subs, 0)], Corrupt),
        ("area not on a page", vec![number(subs, topic.subs_offset + 128)], Corrupt),
        ("area over the data", vec![number(subs, topic.data_offset)], Corrupt),
        ("area behind the data", vec![number(subs, topic.data_offset + topic.capacity)], Corrupt),
        ("area that overflows", vec![number(subs, u64::MAX - 4095)], Corrupt),
        ("a later flag", vec![short(flags, 4)], AbiMismatch),
        ("flags of garbage", vec![short(flags, u32::MAX)], AbiMismatch),
        ("align before flags", vec![short(align, 0), short(flags, 4)], Corrupt),
        ("all known flags", vec![short(flags, 3)], ErrorKind::Os),
    ];
    for (name, changes, expected) in rows {
        let mut page = format(&spec);
        for (at, bytes) in changes {
            page.put(at, &bytes);
        }
        match validate(&page, spec.size) {
            Ok(valid) => assert!(expected == ErrorKind::Os && valid.topic.unwrap().flags == 3, "{name}"),
            Err(error) => assert_eq!(error.kind(), expected, "{name}: {error}"),
        }
    }
}

#[test]
fn wishes_that_cannot_be() {
    for align in [0, 8, 17, 8192] {
        assert_eq!(Spec::ring(4096, align, 4096).unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
    assert_eq!(Spec::region(0, 4096).unwrap_err().kind(), ErrorKind::InvalidArgument);
    for huge in [(1 << 62) + 1, u64::MAX - 4096, u64::MAX] {
        assert_eq!(Spec::ring(huge, 16, 4096).unwrap_err().kind(), ErrorKind::NoSpace);
        assert_eq!(Spec::bus(16, huge, 16, 4096).unwrap_err().kind(), ErrorKind::NoSpace);
    }
    assert_eq!(Spec::region(u64::MAX, 4096).unwrap_err().kind(), ErrorKind::NoSpace);
}

#[test]
fn two_rings_of_a_bus_must_not_overlap() {
    let spec = Spec::bus(1 << 16, 1 << 16, 16, page_size()).unwrap();
    for offset in [HEADER_SIZE as u64, 2 * HEADER_SIZE as u64] {
        let mut page = format(&spec);
        page.put(BLOCK_OFFSETS[1] + offset_of!(Geometry, data_offset), &offset.to_ne_bytes());
        assert_eq!(validate(&page, spec.size).unwrap_err().kind(), ErrorKind::Corrupt);
    }
}

/// Whatever the bytes are: no panic, and what is accepted lies inside the file.
#[test]
fn no_header_page_leads_outside_its_file() {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let bus = Spec::bus(1 << 16, 1 << 14, 16, page_size()).unwrap();
    let region = Spec::region(9_000, page_size()).unwrap();
    let topic = Spec::topic(1 << 14, 64, 40, TOPIC_MAY_EJECT, page_size()).unwrap();
    let originals =
        [ring_page(), (format(&bus), bus.size), (format(&region), region.size), (format(&topic), topic.size)];
    let mut accepted = 0;
    let mut topics = 0;
    for round in 0..80_000 {
        let (original, size) = &originals[round % 4];
        let mut page = original.clone();
        for _ in 0..=random.next() % 3 {
            let base = [0, BLOCK_OFFSETS[0], BLOCK_OFFSETS[1]][random.next() as usize % 3];
            let at = base + random.next() as usize % 64;
            let value = match random.next() % 4 {
                0 => random.next(),
                1 => 1 << (random.next() % 64),
                2 => u64::MAX << (random.next() % 64),
                _ => random.next() % 5 * 4096,
            };
            let width = 1 << (random.next() % 4);
            page.put(at, &value.to_ne_bytes()[..width]);
        }
        let file_size = if random.next().is_multiple_of(8) { page.claimed_size() } else { *size };
        let Ok(valid) = validate(&page, file_size) else { continue };
        accepted += 1;
        let ends = valid.rings.iter().flatten().map(|ring| {
            assert!(ring.capacity.is_power_of_two() && ring.align.is_power_of_two());
            assert!((16..=4096).contains(&ring.align));
            (ring.data_offset, ring.capacity)
        });
        let region = valid.region.map(|region| {
            assert!((1..=region.capacity).contains(&region.len));
            (region.data_offset, region.capacity)
        });
        let topic = valid.topic.map(|topic| {
            topics += 1;
            assert!(topic.capacity.is_power_of_two() && topic.align.is_power_of_two());
            assert!((32..=4096).contains(&topic.align) && u64::from(topic.align) <= topic.capacity / 2);
            assert!((1..=1024).contains(&topic.slots) && topic.flags <= 3);
            assert!(topic.subs_offset >= HEADER_SIZE as u64 && topic.subs_offset % page_size() as u64 == 0);
            assert!(topic.subs_offset + topic.subs_len() <= topic.data_offset);
            (topic.data_offset, topic.capacity)
        });
        for (data_offset, capacity) in ends.chain(region).chain(topic) {
            assert!(data_offset >= HEADER_SIZE as u64 && data_offset % page_size() as u64 == 0);
            assert!(data_offset.checked_add(capacity).unwrap() <= file_size);
        }
    }
    assert!(accepted > 1_000 && topics > 1_000, "the test does not reach past the first check: {accepted}, {topics}");
}
