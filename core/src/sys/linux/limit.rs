//! Resource limits.

use rustix::process::Resource;

use crate::sys::placement::Limit;

/// Asks `prlimit64`, and `/proc/self/limits` where that is refused: a refusal is no limit of 0.
pub(crate) fn limit_of(resource: Resource) -> Limit {
    let mut limit = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: asks about this process, sets nothing, and writes one `rlimit64`.
    let rc = unsafe { libc::prlimit64(0, resource as _, std::ptr::null(), &mut limit) };
    if rc == 0 {
        return if limit.rlim_cur == libc::RLIM64_INFINITY { Limit::None } else { Limit::Bytes(limit.rlim_cur) };
    }
    let row = match resource {
        Resource::Fsize => "Max file size",
        Resource::Memlock => "Max locked memory",
        _ => return Limit::Unknown,
    };
    parse(&std::fs::read_to_string("/proc/self/limits").unwrap_or_default(), row)
}

fn parse(limits: &str, row: &str) -> Limit {
    let soft = limits.lines().find_map(|line| line.strip_prefix(row)?.split_ascii_whitespace().next());
    match soft {
        Some("unlimited") => Limit::None,
        Some(number) => number.parse().map_or(Limit::Unknown, Limit::Bytes),
        None => Limit::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sources_say_the_same() {
        let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
        assert_eq!(parse(&limits, "Max file size"), limit_of(Resource::Fsize));
        assert_eq!(parse(&limits, "Max locked memory"), limit_of(Resource::Memlock));
        assert_eq!(parse("Max file size             4096    unlimited   bytes", "Max file size"), Limit::Bytes(4096));
        assert_eq!(parse("", "Max file size"), Limit::Unknown);
    }
}
