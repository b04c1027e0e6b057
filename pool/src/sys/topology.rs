//! The processors.

/// How many threads of this process can run at a time: its affinity and its control group's quota count. At least 1.
pub(crate) fn cpus() -> usize {
    #[cfg(miri)]
    return 2;
    #[cfg(not(miri))]
    // It fails only where the system does not say how many there are.
    return std::thread::available_parallelism().map_or(1, usize::from);
}

#[cfg(test)]
mod tests {
    #[test]
    fn there_is_a_processor() {
        assert!(super::cpus() >= 1);
    }

    #[cfg(all(target_os = "linux", not(miri)))]
    #[test]
    fn a_process_bound_to_one_processor_has_one() {
        // In a thread of its own, whose end is the end of the binding.
        let bound = std::thread::spawn(|| {
            // SAFETY: the set is plain data, for which zeros are the empty set; all calls stay within it.
            unsafe {
                let mut set: libc::cpu_set_t = std::mem::zeroed();
                assert_eq!(libc::sched_getaffinity(0, size_of_val(&set), &mut set), 0);
                let first = (0..libc::CPU_SETSIZE as usize).find(|&cpu| libc::CPU_ISSET(cpu, &set)).unwrap();
                libc::CPU_ZERO(&mut set);
                libc::CPU_SET(first, &mut set);
                assert_eq!(libc::sched_setaffinity(0, size_of_val(&set), &set), 0);
            }
            super::cpus()
        });
        assert_eq!(bound.join().unwrap(), 1);
    }
}
