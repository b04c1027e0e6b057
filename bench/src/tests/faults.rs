//! Workers that crash, hang or talk nonsense: each becomes a row that says so, and the other rows stand.

use super::{alone, directory};
use crate::plan::{Candidate, GroupPlan};
use crate::run::run_groups;
use crate::*;
use std::path::Path;
use std::time::{Duration, Instant};

/// Fails as its name says.
struct Faulty(&'static str);

const FAULTS: [&str; 6] = ["aborts", "is-killed", "hangs", "panics", "refuses", "damages"];

impl Mechanism for Faulty {
    fn about(&self) -> About {
        About::new(self.0, Kind::Peer, true, "fails").version("1.2.3")
    }

    fn can(&self, burst: &Burst) -> bool {
        burst.test == Test::Rtt
    }

    fn prepare(&self, _setup: &Setup) -> Result<Prepared> {
        if self.0 == "refuses" {
            return Err("there is no such thing on this machine".into());
        }
        let name = self.0;
        Ok(Prepared::new("", move || Ok(Box::new(Fault { name, bursts: 0 }) as Box<dyn End>)))
    }

    fn join(&self, _setup: &Setup, _ticket: &str) -> Result<Box<dyn End>> {
        assert!(self.0 != "panics", "a library's own assertion");
        Ok(Box::new(Fault { name: self.0, bursts: 0 }))
    }
}

struct Fault {
    name: &'static str,
    bursts: u32,
}

impl End for Fault {
    fn lead(&mut self, _burst: &Burst, _control: &Control, samples: &mut Vec<u64>) -> Result<()> {
        self.bursts += 1;
        samples.push(clock::ticks(1_000_000));
        if self.name == "is-killed" && self.bursts == 3 {
            // SAFETY: a signal to this process itself.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        }
        if self.name == "aborts" && self.bursts == 3 {
            // As a sender that polls for an answer which never comes.
            loop {
                std::hint::spin_loop();
            }
        }
        Ok(())
    }

    fn follow(&mut self, _burst: &Burst, _control: &Control) -> Result<()> {
        self.bursts += 1;
        match self.name {
            "aborts" if self.bursts == 3 => std::process::abort(),
            "hangs" if self.bursts == 3 => loop {
                std::thread::sleep(Duration::from_secs(1));
            },
            "damages" if self.bursts == 3 => verify(1, 32, 1),
            _ => Ok(()),
        }
    }
}

/// Not a test of its own: the measuring processes of the one below run it.
#[test]
fn faulty_worker() {
    let all: Vec<Faulty> = FAULTS.into_iter().map(Faulty).collect();
    let all: Vec<&dyn Mechanism> = all.iter().map(|one| one as &dyn Mechanism).collect();
    if let Some(code) = child_main(&all) {
        std::process::exit(code);
    }
}

fn manifest(directory: &Path, name: &str, command: Option<Vec<String>>, failure: Option<&str>) {
    let text = serde_json::json!({
        "name": name, "version": "9", "what": "a peer", "command": command, "failure": failure
    });
    std::fs::write(directory.join(format!("{name}.json")), text.to_string()).expect("write");
}

/// A worker that lists one mechanism and then does this.
fn script(name: &str, then: &str) -> Option<Vec<String>> {
    let list = format!(r#"[{{"name":"{name}","kind":"peer","what":"","version":"","copied":true}}]"#);
    let text = format!("case \"$RAMWAY_BENCH_WORKER\" in *list*) echo hello; echo '{list}';; *) {then};; esac");
    Some(["/bin/sh", "-c", &text].map(str::to_owned).to_vec())
}

fn group(names: &[&str]) -> GroupPlan {
    let burst = Burst { count: 50, ..Burst::new(Test::Rtt, Mode::Spin, 32, 50) };
    let plan = plan::groups(Plan::Quick).into_iter().find(|plan| plan.group.id == "rtt-spin").expect("a group");
    let candidates = names.iter().map(|&name| Candidate { mechanism: name.into(), capacity: 1 << 16 }).collect();
    GroupPlan { burst, candidates, budget: Duration::from_millis(20), ..plan }
}

#[test]
fn a_fault_is_a_row_and_the_others_stand() {
    let _alone = alone();
    let peers = directory("faults");
    let program = std::env::current_exe().expect("a path").to_str().expect("UTF-8").to_owned();
    let own = ["--exact", "tests::faults::faulty_worker", "--nocapture"].map(str::to_owned);
    manifest(&peers, "faulty", Some([vec![program], own.to_vec()].concat()), None);
    manifest(&peers, "babbles", script("babbles", "echo '{\"ready\": nonsense'; cat"), None);
    manifest(&peers, "greets", script("greets", "echo 'hello, how are you'; exit 3"), None);
    manifest(&peers, "swears", script("swears", "echo 'this will not do' >&2; exit 3"), None);
    manifest(&peers, "is-silent", script("is-silent", "exec sleep 100"), None);
    manifest(&peers, "lists-nothing", Some(vec!["/bin/true".into()]), None);
    manifest(&peers, "is-gone", Some(vec!["/nonexistent/peer".into()]), None);
    manifest(&peers, "unbuilt", None, Some("did not build: no compiler"));
    let mut names = vec!["raw-flag", "ring", "babbles", "greets", "swears", "is-silent"];
    names.extend(["lists-nothing", "is-gone", "unbuilt"]);
    names.extend(FAULTS);

    let before = machine::allowed();
    let mut options = Options::quick();
    options.peers = Some(peers.clone());
    // Far longer than any of the others needs, on a busy machine too.
    options.wait_max = Duration::from_secs(4);
    let began = Instant::now();
    let report = run_groups(&options, vec![group(&names)], &mut |_| {}).expect("a report");
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());

    assert_eq!(report.rows.len(), names.len());
    for (name, expected) in [
        ("raw-flag", None),
        ("ring", None),
        ("babbles", Some("nonsense")),
        ("greets", Some("hello, how are you")),
        ("swears", Some("this will not do")),
        ("is-silent", Some("hangs")),
        ("lists-nothing", Some("no list")),
        ("is-gone", Some("No such file")),
        ("unbuilt", Some("did not build: no compiler")),
        ("aborts", Some("second process")),
        ("is-killed", Some("SIGKILL")),
        ("hangs", Some("hangs")),
        ("panics", Some("a library's own assertion")),
        ("refuses", Some("no such thing on this machine")),
        ("damages", Some("not the bytes sent")),
    ] {
        let row = report.rows.iter().find(|row| row.about.name == name).expect(name);
        match (expected, &row.failure) {
            (None, None) => assert!(row.figures.as_ref().is_some_and(|figures| figures.operations > 0), "{name}"),
            (Some(text), Some(failure)) => assert!(failure.contains(text), "{name}: {failure}"),
            (expected, failure) => panic!("{name}: {expected:?}, {failure:?}"),
        }
    }
    // What was pinned was other processes, and what they used is gone.
    assert_eq!(machine::allowed(), before);
    let prefix = format!("ramway-bench-{}-", std::process::id());
    for base in [place::memory(), place::disk()] {
        let ours = |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().starts_with(&prefix);
        assert!(!std::fs::read_dir(base).expect("a directory").flatten().any(|entry| ours(&entry)));
    }
    std::fs::remove_dir_all(peers).expect("remove");
}
