//! Memory that begins where it must: for `O_DIRECT`, and for huge pages.

use ramway_pool::{Buffer, BufferPool};

#[track_caller]
fn begins_at_a_multiple(buffer: &[u8], alignment: usize) {
    assert_eq!(buffer.as_ptr() as usize % alignment, 0, "{alignment}");
}

#[test]
fn every_buffer_begins_at_a_multiple_whichever_way_it_was_got() {
    let zeros = vec![0; 3 << 20];
    for alignment in [1, 2, 64, 512, 4096, 65_536, 2 << 20] {
        let pool = BufferPool::builder().alignment(alignment).build().unwrap();
        pool.preallocate(3, 5000).unwrap();
        for len in [0, 1, 511, 512, 4096, 5000, 65_536, 300_000, 3 << 20] {
            for round in 0..2 {
                let buffers: Vec<Buffer> = (0..4).map(|_| pool.get_zeroed(len)).collect();
                for buffer in &buffers {
                    begins_at_a_multiple(buffer, alignment);
                    assert!(**buffer == zeros[..len], "{alignment} {len} {round}");
                }
                let mut empty = pool.get(len);
                assert_eq!(empty.spare_capacity_mut().as_ptr() as usize % alignment, 0, "{alignment} {len}");
                assert_eq!(pool.get_uninit(len).as_ptr() as usize % alignment, 0, "{alignment} {len}");
                drop(buffers);
            }
        }
        assert_eq!(pool.stats().in_use_bytes, 0);
        pool.clear();
        assert_eq!(pool.stats().held_bytes, 0, "{alignment}");
    }
}

#[test]
fn memory_is_whole_sectors() {
    let pool = BufferPool::builder().alignment(4096).build().unwrap();
    for (len, memory) in [(1, 4096), (4096, 4096), (4097, 8192), (12_288, 12_288), (1 << 20, 1 << 20)] {
        let buffer = pool.get(len);
        assert_eq!((buffer.capacity(), pool.stats().in_use_bytes), (len, memory));
        drop(buffer);
        pool.clear();
    }
    // Sectors of 512 bytes do not make pages of short buffers.
    let pool = BufferPool::builder().alignment(512).min_buffer_size(64).build().unwrap();
    let _buffers: Vec<_> = (0..8).map(|_| pool.get(100)).collect();
    assert_eq!(pool.stats().held_bytes, 8 * 512);
}

#[test]
fn a_vector_is_a_copy_and_vectors_are_not_kept() {
    let pool = BufferPool::builder().alignment(4096).build().unwrap();
    let mut buffer = pool.get_zeroed(10_000);
    buffer.fill(9);
    assert_eq!(buffer.into_vec(), [9; 10_000]);
    assert_eq!(pool.len(), 1);
    pool.put(vec![1; 8192]);
    assert!(pool.take_with_capacity(8192).capacity() >= 8192);
    assert_eq!((pool.len(), pool.stats().adopted), (1, 0));
}

#[test]
fn a_frozen_buffer_is_as_aligned_and_goes_back() {
    let pool = BufferPool::builder().alignment(4096).build().unwrap();
    let bytes = pool.get_zeroed(8192).freeze();
    begins_at_a_multiple(&bytes, 4096);
    let half = bytes.slice(4096..);
    drop(bytes);
    assert!(pool.is_empty());
    std::thread::spawn(move || drop(half)).join().unwrap();
    assert_eq!(pool.len(), 1);
}

#[cfg(all(target_os = "linux", not(miri)))]
mod linux {
    use ramway_pool::BufferPool;
    use std::fs::{File, OpenOptions};
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::{FileExt, OpenOptionsExt};
    use std::path::PathBuf;

    const SECTOR: usize = 4096;

    /// A file of this test's own, removed when it is over.
    struct Temporary(PathBuf);

    impl Drop for Temporary {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    fn direct(path: &std::path::Path) -> std::io::Result<File> {
        OpenOptions::new().read(true).write(true).create(true).truncate(false).custom_flags(libc::O_DIRECT).open(path)
    }

    #[test]
    fn a_file_without_a_page_cache_can_be_read_and_written() {
        let name = format!("pool-aligned-{}", std::process::id());
        let file = Temporary(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name));
        let direct = match direct(&file.0) {
            Ok(direct) => direct,
            // What a file system without O_DIRECT says.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                println!("not checked: no O_DIRECT at {}", file.0.display());
                return;
            }
            Err(error) => panic!("{error}"),
        };
        let pool = BufferPool::builder().alignment(SECTOR).build().unwrap();
        let len = 300_000_usize; // ends within a sector

        let mut out = pool.get_zeroed(len.next_multiple_of(SECTOR));
        out.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at / 7) as u8);
        direct.write_all_at(&out, 0).unwrap();
        direct.set_len(len as u64).unwrap();

        // Straight into memory that nobody wrote before, the last sector only as far as the file goes.
        let mut back = pool.get(len.next_multiple_of(SECTOR));
        let mut done = 0;
        while done < len {
            let room = &mut back.spare_capacity_mut()[done..];
            // SAFETY: the kernel writes at most as many bytes as there are, and says how many.
            let read = unsafe { libc::pread(direct.as_raw_fd(), room.as_mut_ptr().cast(), room.len(), done as i64) };
            assert!(read > 0, "{}", std::io::Error::last_os_error());
            done += read as usize;
        }
        assert_eq!(done, len);
        // SAFETY: the kernel wrote these.
        unsafe { back.set_len(len) };
        assert!(*back == out[..len]);
    }

    /// What the kernel says of the mapping that this address is in.
    fn mapping_of(address: usize) -> String {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut found = String::new();
        let mut inside = false;
        for line in maps.lines() {
            let range = line.split_once(' ').and_then(|(range, _)| range.split_once('-'));
            let ends = range.map(|(from, to)| (usize::from_str_radix(from, 16), usize::from_str_radix(to, 16)));
            if let Some((Ok(from), Ok(to))) = ends {
                inside = (from..to).contains(&address);
            }
            if inside {
                found.push_str(line);
                found.push('\n');
            }
        }
        found
    }

    fn is_advised(address: usize) -> bool {
        let mapping = mapping_of(address);
        let flags = mapping.lines().find_map(|line| line.strip_prefix("VmFlags:"));
        flags.unwrap_or_else(|| panic!("{mapping}")).split_whitespace().any(|flag| flag == "hg")
    }

    #[test]
    fn buffers_of_huge_pages_ask_for_them_and_begin_where_one_can() {
        const HUGE: usize = 2 << 20;
        if !std::path::Path::new("/sys/kernel/mm/transparent_hugepage/enabled").exists() {
            println!("not checked: this kernel has no transparent huge pages");
            return;
        }
        let pool = BufferPool::builder().huge_pages(true).build().unwrap();
        let zeros = vec![0; 30 << 20];
        let (mut buffers, mut memory) = (Vec::new(), 0);
        for (len, whole) in [(HUGE, HUGE), (HUGE + 1, HUGE + (256 << 10)), (5 << 20, 5 << 20), (30 << 20, 30 << 20)] {
            let buffer = pool.get_zeroed(len);
            assert_eq!(buffer.as_ptr() as usize % HUGE, 0, "{len}");
            assert!(is_advised(buffer.as_ptr() as usize), "{len}");
            assert!(*buffer == zeros[..len], "{len}");
            memory += whole;
            assert_eq!(pool.stats().in_use_bytes, memory, "{len}");
            buffers.push(buffer);
        }
        drop(buffers);
        assert_eq!(pool.clear(), memory);
        // Shorter ones do not ask, and take no more memory than any.
        let short = pool.get_zeroed(4096);
        assert_eq!(pool.stats().held_bytes, 4096);
        assert!(!is_advised(short.as_ptr() as usize));
    }
}
