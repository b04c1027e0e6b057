//! Whatever a file's first pages hold: `inspect` and opening it by name give an answer or an error, and what they
//! accept lies inside the file. The input is a list of writes over a good segment of one of the kinds.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ramway::survey;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;

/// Good segments of each kind, made by the library itself.
fn originals() -> &'static [Vec<u8>] {
    static ORIGINALS: std::sync::OnceLock<Vec<Vec<u8>>> = std::sync::OnceLock::new();
    ORIGINALS.get_or_init(|| {
        let path = |kind: &str| format!("/dev/shm/ramway-fuzz-{}-{kind}", std::process::id());
        let (ring, region, topic) = (path("ring"), path("region"), path("topic"));
        let mut tx = ramway::Ring::create(&ring).capacity(4096).sender().unwrap();
        tx.try_send(1, b"one").unwrap();
        tx.try_send(1, &[2; 100]).unwrap();
        let kept = ramway::Region::create(&region, 5000).unwrap();
        let mut publisher = ramway::Topic::create(&topic).capacity(4096).publisher().unwrap();
        publisher.send(1, &[3; 100]).unwrap();
        let durable = ramway::Topic::open(&topic).label("x").durable(true).subscriber().unwrap();
        publisher.send(1, b"two").unwrap();
        let all = [&ring, &region, &topic].map(|path| std::fs::read(path).unwrap());
        drop((tx, kept, publisher, durable));
        let _ = (std::fs::remove_file(ring), std::fs::remove_file(topic));
        all.into()
    })
}

fn memfd() -> OwnedFd {
    use std::os::fd::FromRawFd;
    // SAFETY: a fresh descriptor.
    unsafe { OwnedFd::from_raw_fd(libc::memfd_create(c"ramway-fuzz".as_ptr(), libc::MFD_CLOEXEC)) }
}

fuzz_target!(|data: &[u8]| {
    let [kind, cut, rest @ ..] = data else { return };
    let mut bytes = originals()[*kind as usize % originals().len()].clone();
    for write in rest.chunks(10) {
        let [low, high, value @ ..] = write else { break };
        // Mostly among the header's words.
        let at = u16::from_le_bytes([*low, *high]) as usize;
        let at = match at % 4 {
            0 => at / 4 % 0x40,
            1 => 0x400 + at / 4 % 0x280,
            2 => 0x800 + at / 4 % 0x280,
            _ => at % bytes.len(),
        };
        let end = (at + value.len()).min(bytes.len());
        bytes[at..end].copy_from_slice(&value[..end - at]);
    }
    if *cut < 64 {
        bytes.truncate(bytes.len() * *cut as usize / 64);
    }
    let file = std::fs::File::from(memfd());
    file.write_all_at(&bytes, 0).unwrap();
    let Ok(segment) = survey::inspect_fd(file.as_fd()) else { return };
    for ring in segment.rings.iter().flatten() {
        assert!(ring.capacity.is_power_of_two() && ring.align.is_power_of_two());
        assert!(ring.data_offset.checked_add(ring.capacity).unwrap() <= bytes.len() as u64);
        if let Some(undelivered) = &ring.undelivered {
            assert!(undelivered.bytes <= ring.capacity);
        }
    }
    if let Some(topic) = &segment.topic {
        assert!(topic.capacity.is_power_of_two() && topic.align.is_power_of_two());
        assert!(topic.data_offset.checked_add(topic.capacity).unwrap() <= bytes.len() as u64);
        assert!(topic.subscribers.len() <= topic.slots as usize && topic.slots <= 1024);
        assert!(topic.subscribers.iter().all(|one| one.lag_bytes <= topic.capacity));
    }
    if let Some(region) = &segment.region {
        assert!(region.len <= region.capacity);
        assert!(region.data_offset.checked_add(region.capacity).unwrap() <= bytes.len() as u64);
    }
});
