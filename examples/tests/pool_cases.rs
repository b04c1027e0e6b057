//! `pool-cases` is run as a program, with as little work as it can do.

use std::path::PathBuf;
use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pool-cases")).args(arguments).output().unwrap()
}

struct Place(PathBuf);

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn every_case_is_measured_in_every_way_and_the_file_is_removed() {
    let place = Place(std::env::temp_dir().join(format!("ramway-pool-cases-test-{}", std::process::id())));
    std::fs::create_dir(&place.0).unwrap();
    let output = run(&["--rounds", "1", "--mebibytes", "2", "--directory", place.0.to_str().unwrap()]);
    let (stdout, stderr) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{stdout}{stderr}");
    assert_eq!(std::fs::read_dir(&place.0).unwrap().count(), 0);

    let (held, cases) = stdout.split_once("\n\n").unwrap();
    let mebibytes = |way: &str| -> f64 {
        let line = held.lines().find(|line| line.trim_start().starts_with(way)).unwrap();
        line.trim_end_matches(" MiB").rsplit(' ').next().unwrap().parse().unwrap()
    };
    // 64 MiB were filled; the rest is what the program itself needs meanwhile.
    let (kept, trimmed, cleared) =
        (mebibytes("pool  "), mebibytes("pool, after trim"), mebibytes("pool, after clear()"));
    assert!(kept >= 64.0 && (8.0..20.0).contains(&trimmed) && cleared < 12.0, "{held}");

    let mut found = Vec::new();
    for line in cases.lines().skip(1) {
        match line.strip_prefix("  ") {
            None => found.push((line, Vec::new())),
            Some(way) => {
                let (name, figures) = way.split_at(36);
                let figures: Vec<f64> = figures.split_whitespace().map(|figure| figure.parse().unwrap()).collect();
                assert!(figures.len() == 3 && figures[0] > 0.0 && figures[0] <= figures[1], "{line}");
                found.last_mut().unwrap().1.push((name.trim_end(), figures[2]));
            }
        }
    }
    assert_eq!(found.len(), 11, "{cases}");
    assert!(found.iter().all(|(_, ways)| ways.len() >= 2 && ways[0].0.starts_with("pool")), "{cases}");
    // The guide has these cases and ways, from a longer file.
    let guide = include_str!("../../docs/guides/buffer-pool.md");
    for (case, ways) in &found {
        let (_, listed) = guide.split_once(&format!("{}\n  ", case.replace("2 MiB at", "64 MiB at"))).expect(case);
        let listed = listed.lines().take(ways.len()).map(|line| line.trim_start().split("   ").next().unwrap());
        assert!(listed.eq(ways.iter().map(|(name, _)| *name)), "{case}");
    }
    // What a pool is for: memory that was there before costs no page fault. 2 MiB are 512 of them.
    let (name, ways) = &found[0];
    assert_eq!(*name, "2 MiB at a time, from the page cache");
    assert!(ways[0].1 < 20.0, "{cases}");
}

#[test]
fn what_is_wrong_is_named() {
    for (arguments, code, said) in [
        (vec!["--rounds", "0"], 2, "0 is not in 1..=1000"),
        (vec!["--mebibytes", "1"], 2, "1 is not in 2..=1024"),
        (vec!["--directory", "/nowhere/at/all"], 1, "pool-cases: a file in /nowhere/at/all: No such file or directory"),
    ] {
        let output = run(&arguments);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{stderr}");
        assert!(stderr.contains(said), "{stderr}");
    }
}
