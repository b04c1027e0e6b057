use super::*;
use crate::segment::words::RingWords;

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
    let originals = [ring_page(), (format(&bus), bus.size), (format(&region), region.size)];
    let mut accepted = 0;
    for round in 0..60_000 {
        let (original, size) = &originals[round % 3];
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
        for (data_offset, capacity) in ends.chain(region) {
            assert!(data_offset >= HEADER_SIZE as u64 && data_offset % page_size() as u64 == 0);
            assert!(data_offset.checked_add(capacity).unwrap() <= file_size);
        }
    }
    assert!(accepted > 1_000, "the test does not reach past the first check: {accepted}");
}
