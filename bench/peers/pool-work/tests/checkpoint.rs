//! The checkpoint program's groups at a small scale: every byte verified, and wrong ones found.

use clap::Parser;
use pool_work::checkpoint::{Checkpoint, Model, Options, Report, run};
use pool_work::{Allocator, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// A directory of this test's own, on the disk where the build is.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn run(&self, arguments: &[&str]) -> Result<Report> {
        let directory = self.0.to_str().unwrap();
        let all = ["checkpoint", "--dir", directory, "--warmup", "1", "--rounds", "2", "--cold-rounds", "1"];
        run(&Options::parse_from(all.iter().chain(arguments)), Allocator::System, &mut |_| {})
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What a machine may not have: its text is then the row's.
fn may_lack(why: &str) -> bool {
    ["no io_uring here", "does not lock so much memory", "has no O_DIRECT"].iter().any(|known| why.contains(known))
}

#[test]
fn every_way_loads_every_byte() {
    let directory = Directory::new("ways");
    let report = directory.run(&["--smaller", "16", "--chunk", "64"]).unwrap();
    assert_eq!(report.tensors, 17);
    let wanted = [("read", 6), ("pread", 6), ("uring", 7), ("parts", 7), ("used", 4), ("once", 3), ("direct", 4)];
    for (id, rows) in wanted {
        let group = report.groups.iter().find(|group| group.id == id).unwrap_or_else(|| panic!("no group {id}"));
        assert_eq!(group.rows.len(), rows, "{id}");
        for row in &group.rows {
            match &row.failure {
                None => assert!(row.figures.as_ref().unwrap().rounds_ms.iter().all(|&ms| ms > 0.0)),
                Some(why) => assert!(may_lack(why), "{id}/{}: {why}", row.name),
            }
            assert_eq!(row.note, None, "{id}/{}", row.name);
        }
    }
    let cold = report.groups.iter().any(|group| group.id == "cold");
    assert!(cold || report.skipped.iter().any(|said| said.starts_with("cold")), "{:?}", report.skipped);
    assert!(report.text().contains("pool-registered"));
    assert!(report.bars.iter().any(|bar| bar.reader == "read" && bar.times > 0.0 && bar.met == (bar.times >= 3.8)));
    // The file is gone.
    assert_eq!(fs::read_dir(&directory.0).unwrap().count(), 0);
}

#[test]
fn a_pool_does_not_fault_again() {
    let directory = Directory::new("faults");
    let report = directory.run(&["--smaller", "4", "--only", "read"]).unwrap();
    let faults = |name: &str| {
        let row = report.groups[0].rows.iter().find(|row| row.name == name).unwrap();
        row.figures.as_ref().unwrap().faults
    };
    let pages = report.bytes as f64 / 4096.0;
    for name in ["pool", "pool-aligned", "pool-huge", "kept"] {
        assert!(faults(name) < pages / 20.0, "{name}: {} of {pages}", faults(name));
    }
}

#[test]
fn a_wrong_byte_is_found_and_named() {
    let directory = Directory::new("wrong");
    let small = ["--smaller", "16", "--only", "read", "--keep"];
    directory.run(&small).unwrap();
    let path = fs::read_dir(&directory.0).unwrap().next().unwrap().unwrap().path();
    let place = {
        let checkpoint = Checkpoint::open(&path).unwrap();
        checkpoint.tensors.iter().find(|place| place.name == "wte.weight").unwrap().clone()
    };
    let mut bytes = fs::read(&path).unwrap();
    bytes[place.offset as usize + place.len / 2] ^= 0x10;
    fs::write(&path, &bytes).unwrap();
    let cause = directory.run(&small).unwrap_err().to_string();
    assert!(cause.contains("the bytes of wte.weight are not those that were written"), "{cause}");
    // As a file of somebody's own it has the bytes that it has.
    let own = path.to_str().unwrap();
    directory.run(&["--only", "read", "--file", own]).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let cause = directory.run(&["--only", "read", "--file", own]).unwrap_err().to_string();
    assert!(cause.contains(own), "{cause}");
}

#[test]
fn a_file_of_another_model_is_refused() {
    let directory = Directory::new("other");
    let small = ["--smaller", "16", "--only", "read", "--keep"];
    directory.run(&small).unwrap();
    let path = fs::read_dir(&directory.0).unwrap().next().unwrap().unwrap().path();
    let other = Model::GPT2.smaller(24);
    fs::remove_file(&path).unwrap();
    let elsewhere = Directory::new("elsewhere");
    drop(Checkpoint::make(other, &elsewhere.0, true).unwrap());
    let made = fs::read_dir(&elsewhere.0).unwrap().next().unwrap().unwrap().path();
    fs::rename(made, &path).unwrap();
    let cause = directory.run(&small).unwrap_err().to_string();
    assert!(cause.contains("bytes, not"), "{cause}");
}

#[test]
fn no_room_and_no_such_group_are_said() {
    // A file system without room.
    let arguments = ["checkpoint", "--dir", "/proc", "--smaller", "16"];
    let cause = run(&Options::parse_from(arguments), Allocator::System, &mut |_| {}).unwrap_err().to_string();
    assert!(cause.contains("/proc has 0 MB free") && cause.contains("--dir"), "{cause}");
    let cause = Directory::new("group").run(&["--only", "reed"]).unwrap_err().to_string();
    assert!(cause.contains("no group is called reed"), "{cause}");
}

#[test]
fn the_program_measures_each_group_in_a_process_of_its_own() {
    let directory = Directory::new("program");
    let json = directory.0.join("report.json");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_checkpoint"));
    command.args(["--smaller", "16", "--rounds", "2", "--only", "read,pread,once", "--dir"]).arg(&directory.0);
    let output = command.arg("--json").arg(&json).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Report = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    let groups: Vec<_> = report.groups.iter().map(|group| group.id.as_str()).collect();
    assert_eq!((groups, report.tensors, report.bars.len()), (vec!["read", "pread", "once"], 17, 2));
    assert_eq!(String::from_utf8_lossy(&output.stdout), report.text());
}
