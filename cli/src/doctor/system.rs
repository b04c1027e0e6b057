//! What runs beside Ramway: the session manager, the process table, the processors.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::Item;

/// Whether logind removes the segments of a user who logs out.
pub fn remove_ipc() -> Item {
    const NAME: &str = "RemoveIPC";
    if !Path::new("/run/systemd/system").is_dir() {
        return Item::ok(NAME, "systemd does not run here, so nothing removes segments at logout");
    }
    let (on, whence) = remove_ipc_setting();
    let user = rustix::process::getuid().as_raw();
    if !on {
        return Item::ok(NAME, format!("off ({whence})"));
    }
    if user < 1000 {
        return Item::ok(NAME, format!("on ({whence}), but user {user} is a system user, whose segments it leaves"));
    }
    Item::worse(
        NAME,
        format!("on ({whence})"),
        "when the last session of this user ends, logind removes its files in /dev/shm, also under live processes",
        "RemoveIPC=no in /etc/systemd/logind.conf, run the service as a system user, or loginctl enable-linger",
    )
}

/// The last setting wins: logind.conf, then the drop-ins in the order of their names.
fn remove_ipc_setting() -> (bool, String) {
    let mut found = (true, "the default".to_owned());
    let mut files: Vec<PathBuf> = Vec::new();
    for directory in ["/usr/lib/systemd", "/run/systemd", "/etc/systemd"] {
        let dropins = fs::read_dir(format!("{directory}/logind.conf.d")).into_iter().flatten().flatten();
        files.extend(dropins.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "conf")));
    }
    files.sort_by_key(|path| path.file_name().map(ToOwned::to_owned));
    let main = ["/usr/lib/systemd/logind.conf", "/run/systemd/logind.conf", "/etc/systemd/logind.conf"];
    for path in main.iter().map(PathBuf::from).chain(files) {
        for line in fs::read_to_string(&path).unwrap_or_default().lines() {
            if let Some(value) = line.trim().strip_prefix("RemoveIPC=") {
                let on = matches!(value.trim().to_ascii_lowercase().as_str(), "1" | "yes" | "true" | "on");
                found = (on, path.display().to_string());
            }
        }
    }
    found
}

/// Whether `ramway ls` can tell who is attached.
pub fn processes() -> Item {
    const NAME: &str = "process table";
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let hidden = mounts.lines().any(|line| {
        let mut fields = line.split(' ').skip(1);
        let (at, options) = (fields.next(), fields.nth(1).unwrap_or_default());
        at == Some("/proc")
            && options
                .split(',')
                .any(|option| option.strip_prefix("hidepid=").is_some_and(|value| !matches!(value, "0" | "off")))
    });
    if fs::read_dir("/proc/self/fdinfo").is_err() {
        Item::worse(NAME, "/proc/self/fdinfo cannot be read", "ls cannot name the processes", "mount /proc")
    } else if hidden {
        let because = "ls cannot name other users' processes (nothing else depends on it)";
        Item::worse(NAME, "/proc is mounted with hidepid", because, "mount -o remount,hidepid=0 /proc")
    } else {
        Item::ok(NAME, "/proc shows who holds which lock")
    }
}

/// Whether the processors run at full speed when they are needed.
pub fn governor() -> Item {
    const NAME: &str = "CPU governor";
    let mut governors = BTreeSet::new();
    for cpu in fs::read_dir("/sys/devices/system/cpu").into_iter().flatten().flatten() {
        if let Ok(governor) = fs::read_to_string(cpu.path().join("cpufreq/scaling_governor")) {
            governors.insert(governor.trim().to_owned());
        }
    }
    let found = governors.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    match found.as_str() {
        "" => Item::ok(NAME, "none visible (usual in a virtual machine): the host decides"),
        "performance" | "schedutil" => Item::ok(NAME, found),
        _ => Item::worse(
            NAME,
            found,
            "the first messages after a pause run on a slow clock, and measurements drift",
            "cpupower frequency-set -g performance",
        ),
    }
}

/// How many processors there are, how they hang together, and whether a quota throttles spinning.
pub fn topology() -> Item {
    const NAME: &str = "CPU topology";
    let usable = std::thread::available_parallelism().map_or(1, usize::from);
    let online = count(&read("/sys/devices/system/cpu/online"));
    let nodes = count(&read("/sys/devices/system/node/online")).max(1);
    let siblings = count(&read("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list")).max(1);
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        info.lines()
            .find(|line| line.starts_with(name))
            .and_then(|line| Some(line.split_once(':')?.1.trim().to_owned()))
    };
    let model = field("model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let guest = field("flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    let cache = read("/sys/devices/system/cpu/cpu0/cache/index3/size");
    let mut found = format!("{model}: {usable} usable of {online} online, {siblings} a core, {nodes} NUMA node(s)");
    if !cache.is_empty() {
        found.push_str(&format!(", L3 {cache}"));
    }
    if guest {
        found.push_str(", virtual machine");
    }
    if usable == 1 {
        return Item::worse(
            NAME,
            found,
            "with one processor nobody spins: every exchange is a sleep and a wake-up",
            "give this process two processors (taskset, cpuset)",
        );
    }
    if let Some(quota) = quota() {
        let because = "time that a waiting side spins counts against the quota, and both sides stop when it is used up";
        let text = format!("{found}; a control group grants {quota:.1} processors");
        if quota < 2.0 {
            return Item::worse(
                NAME,
                text,
                because,
                "raise cpu.max to two processors or more, or use the block wait policy",
            );
        }
        found = text;
    }
    if nodes > 1 {
        return Item::worse(
            NAME,
            found,
            "memory of another node costs about twice the latency",
            "keep both processes on one node (numactl --cpunodebind=0), or use the numa_node option",
        );
    }
    Item::ok(NAME, found)
}

/// Processors that the nearest limited control group grants.
fn quota() -> Option<f64> {
    let group = read("/proc/self/cgroup");
    let group = group.lines().find_map(|line| line.strip_prefix("0::"))?.trim_start_matches('/').to_owned();
    let path = Path::new("/sys/fs/cgroup").join(group);
    let limits = path.ancestors().take_while(|path| path.starts_with("/sys/fs/cgroup")).filter_map(|path| {
        let text = read(path.join("cpu.max"));
        let (granted, period) = text.split_once(' ')?;
        Some(granted.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
    });
    limits.reduce(f64::min)
}

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

/// How many numbers a list such as `0-3,8` names.
fn count(list: &str) -> usize {
    let ranges = list.split(',').filter(|part| !part.is_empty());
    ranges
        .map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            match (first.parse::<usize>(), last.parse::<usize>()) {
                (Ok(first), Ok(last)) if first <= last => last - first + 1,
                _ => 0,
            }
        })
        .sum()
}

#[cfg(test)]
mod tests {
    #[test]
    fn lists_of_processors_are_counted() {
        assert_eq!(super::count("0-3,8"), 5);
        assert_eq!(super::count("0"), 1);
        assert_eq!(super::count(""), 0);
    }
}
