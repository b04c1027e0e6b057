//! The program `ramway-bench`: the real command, a few rows at a time; what it says and keeps, never how fast anything was.

#[path = "../../cli/tests/common/mod.rs"]
mod common;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use common::{Place, assert_done, assert_failed, ended, finish, heard, signal, told, until};
use rustix::process::Signal;
use serde_json::{Value, json};

/// Rows that need no second processor to themselves: the side that waits sleeps.
const ROWS: &[&str] = &["--only", "rtt-block/pipe", "rtt-block/tcp", "rtt-block/futex"];

/// `ramway-bench`, with no peers but those of the place.
fn bench(place: &Place, args: &[&str]) -> Command {
    let peers = place.files.join("peers");
    std::fs::create_dir_all(&peers).unwrap();
    let mut command = place.ramway(args);
    command.env("RAMWAY_BENCH_PEERS", peers);
    command
}

fn run(place: &Place, args: &[&str]) -> Output {
    finish(bench(place, args).spawn().unwrap())
}

/// A quick run of [`ROWS`] with these options too.
fn measure(place: &Place, more: &[&str]) -> Output {
    run(place, &[&["--quick", "--time", "50ms"], ROWS, more].concat())
}

fn path(place: &Place, name: &str) -> String {
    place.files.join(name).to_str().unwrap().to_owned()
}

fn json_of(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(bytes)))
}

fn ids(report: &Value) -> Vec<&str> {
    report["rows"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// How many rounds a row has, with those that were mixed.
fn rounds(row: &Value) -> usize {
    row["figures"]["rounds_ns"].as_array().unwrap().len() + row["mixed"].as_u64().unwrap_or(0) as usize
}

/// The names of the files of the place, without the directory of peers.
fn files(place: &Place) -> Vec<String> {
    let entries = std::fs::read_dir(&place.files).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name != "peers");
    names.sort();
    names
}

#[test]
fn help_has_examples_and_exit_codes() {
    let place = Place::new();
    let help = stdout(&run(&place, &["--help"]));
    assert!(help.contains("Examples:") && help.contains("Exit codes:") && help.contains("ramway bench"), "{help}");
}

#[test]
fn a_run_becomes_tables_json_and_a_page() {
    let place = Place::new();
    let (json, html) = (path(&place, "run.json"), path(&place, "run.html"));
    let output = measure(&place, &["--json", &json, "--html", &html]);
    assert_done(&output);
    let text = stdout(&output);
    for part in ["processor", "rtt-block · round trip", "p50", "pipe", "tcp", "futex*"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
    let report = json_of(&std::fs::read(&json).unwrap());
    let mut rows = ids(&report);
    rows.sort_unstable();
    assert_eq!(rows, ["rtt-block/futex", "rtt-block/pipe", "rtt-block/tcp"]);
    for row in report["rows"].as_array().unwrap() {
        assert!(row["failure"].is_null(), "{row}");
        assert!(rounds(row) >= 5, "{row}");
        assert!(
            row["figures"]["operations"].as_u64().unwrap() > 0 && row["figures"]["ns"]["p50"].as_f64().unwrap() > 0.0
        );
    }
    assert!(!report["bars"].as_array().unwrap().is_empty());
    // With two processors the placement was looked at, with one there is none.
    let placement = &report["placement"];
    assert_eq!(placement["none"].is_string(), placement["seen"].as_array().unwrap().is_empty(), "{placement}");
    assert!(text.contains("placement"), "{text}");
    let page = std::fs::read_to_string(&html).unwrap();
    assert!(page.starts_with("<!") && page.contains("rtt-block"), "{}", &page[..page.len().min(200)]);
    assert_eq!(files(&place), ["run.html", "run.json"], "nothing else is left");

    // To standard output there is JSON and nothing else.
    let output = measure(&place, &["--json", "-"]);
    assert_done(&output);
    assert_eq!(json_of(&output.stdout)["schema"], report["schema"]);

    // The same from what was kept.
    let again = run(&place, &["--from", &json]);
    assert_done(&again);
    assert_eq!(stdout(&again), text);
    assert_done(&run(&place, &["--from", &json, "--html", &html]));
    assert!(std::fs::read_to_string(&html).unwrap().contains("rtt-block"));
}

#[test]
fn some_rows_of_a_report() {
    let place = Place::new();
    let json = path(&place, "run.json");
    let only = ["--quick", "--only", "rtt-block/pipe", "--only", "rtt-block/uds", "--rounds", "5", "--json", &json];
    assert_done(&run(&place, &only));
    let part = |only: &str| run(&place, &["--from", &json, "--only", only, "--json"]);
    let of = |output: &Output| json_of(&output.stdout)["rows"].as_array().unwrap().clone();
    let pipe = part("pipe");
    assert_done(&pipe);
    assert_eq!(of(&pipe).iter().map(|row| row["id"].clone()).collect::<Vec<_>>(), ["rtt-block/pipe"]);
    assert_eq!(json_of(&pipe.stdout)["settings"]["only"], serde_json::json!(["pipe"]));
    let both = part("rtt-block");
    assert_eq!(of(&both).len(), 2);
    assert_failed(&part("eventfd"), 2, "has `eventfd` in its name");
}

#[test]
fn where_it_runs_and_how_long_is_said() {
    let place = Place::new();
    let settings = |more: &[&str]| {
        let args = [&["--quick", "--only", "rtt-block/pipe", "--rounds", "5", "--json", "-"], more].concat();
        let output = run(&place, &args);
        assert_done(&output);
        let report = json_of(&output.stdout);
        // Some more where the processors were moved.
        let measured = report["groups"][0]["rounds"].as_u64().unwrap();
        assert!(measured >= 5 && rounds(&report["rows"][0]) as u64 == measured, "{report}");
        let groups = report["groups"].as_array().unwrap().iter().map(|group| group["id"].as_str().unwrap().to_owned());
        (report["settings"]["cpus"].clone(), groups.collect::<Vec<_>>())
    };
    let (pinned, groups) = settings(&[]);
    assert_eq!(groups, ["rtt-block"]);
    let (a, b) = (pinned[0].clone(), pinned[1].clone());
    assert_eq!(settings(&["--swap"]).0, json!([b, a]));
    assert_eq!(settings(&["--unpinned"]).0, json!([null, null]));
    assert_eq!(settings(&["--both-orders"]).1, ["rtt-block", "rtt-block-swapped"]);
    if a != b {
        assert_eq!(settings(&["--cpus", &format!("{b},{a}")]).0, json!([b, a]));
    }
}

#[test]
fn real_time_is_had_or_said_to_be_refused() {
    let place = Place::new();
    let args = ["--quick", "--only", "rtt-block/pipe", "--rounds", "5", "--realtime", "--json", "-"];
    let output = run(&place, &args);
    match output.status.code() {
        Some(0) => assert_eq!(json_of(&output.stdout)["settings"]["realtime"], true),
        _ => assert_failed(&output, 1, "cannot measure"),
    }
}

#[test]
fn the_list_has_groups_mechanisms_and_what_is_missing() {
    let place = Place::new();
    let output = run(&place, &["--list"]);
    assert_done(&output);
    let text = stdout(&output);
    for part in ["rtt-spin", "one-way-64M-each", "--full", "raw-flag", "tachyon", "not built", "make bench-peers"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    manifest(&place, "tachyon", json!({"command": null, "failure": "no clang on this machine\nmore"}));
    let text = stdout(&run(&place, &["--list"]));
    assert!(text.contains("missing: no clang on this machine"), "{text}");
    let listed = json_of(&run(&place, &["--list", "--json"]).stdout);
    let tachyon = listed["mechanisms"].as_array().unwrap().iter().find(|one| one["about"]["name"] == "tachyon");
    assert!(tachyon.unwrap()["missing"].as_str().unwrap().starts_with("no clang"));
    let elsewhere = path(&place, "elsewhere");
    assert_failed(&run(&place, &["--list", "--peers", &elsewhere]), 1, "elsewhere");
}

fn manifest(place: &Place, name: &str, more: Value) {
    let mut manifest = json!({"name": name, "version": "1.2.3", "what": "a peer"});
    manifest.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let peers = place.files.join("peers");
    std::fs::create_dir_all(&peers).unwrap();
    std::fs::write(peers.join(format!("{name}.json")), manifest.to_string()).unwrap();
}

#[test]
fn a_peer_that_is_broken_is_a_row_that_says_so() {
    let place = Place::new();
    manifest(&place, "tachyon", json!({"command": null, "failure": "did not build: no clang"}));
    // Says what it measures, and dies when it is to measure.
    let script = "case $RAMWAY_BENCH_WORKER in *list*) echo '[{\"name\":\"zmq\",\"kind\":\"peer\",\"what\":\"\",\
                  \"version\":\"4\",\"copied\":true}]';; *) echo 'cannot bind' >&2; exit 3;; esac";
    manifest(&place, "zmq", json!({"command": ["/bin/sh", "-c", script], "failure": null}));
    let json = path(&place, "run.json");
    let only =
        ["--quick", "--time", "50ms", "--only", "rtt-block/pipe,rtt-block/tachyon,rtt-block/zmq", "--json", &json];
    let output = run(&place, &only);
    assert_done(&output);
    let text = stdout(&output);
    assert!(text.contains("tachyon: did not build: no clang") && text.contains("cannot bind"), "{text}");
    let report = json_of(&std::fs::read(&json).unwrap());
    let failure =
        |id: &str| report["rows"].as_array().unwrap().iter().find(|row| row["id"] == id).unwrap()["failure"].clone();
    assert!(failure("rtt-block/pipe").is_null());
    assert!(failure("rtt-block/zmq").as_str().unwrap().contains("cannot bind"));
}

#[test]
fn one_row_by_hand() {
    let place = Place::new();
    let args = ["run", "--mechanism", "pipe", "--size", "256", "--capacity", "1MiB", "--messages", "2000"];
    let output = run(&place, &args);
    assert_done(&output);
    let text = stdout(&output);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    let line = json_of(lines[0].as_bytes());
    assert_eq!((line["mechanism"].as_str(), line["size"].as_u64()), (Some("pipe"), Some(256)));
    assert_eq!((line["messages"].as_u64(), line["capacity"].as_u64()), (Some(2000), Some(1 << 20)));
    let seconds = line["seconds"].as_f64().unwrap();
    let rate = line["msgs_per_s"].as_f64().unwrap();
    assert!(seconds > 0.0 && (rate * seconds - 2000.0).abs() < 1e-3, "{line}");
    assert!(lines[1].starts_with("pipe: 2000 messages of 256 B in ") && lines[1].contains("MiB/s"), "{text}");

    let args = ["run", "--mechanism", "uds", "--test", "rtt", "--mode", "block", "--messages", "33", "--json"];
    let output = run(&place, &args);
    assert_done(&output);
    let line = json_of(&output.stdout);
    assert_eq!((line["test"].as_str(), line["mode"].as_str()), (Some("rtt"), Some("block")));
    assert_eq!(line["messages"], 33);
    let args = ["run", "--mechanism", "eventfd", "--test", "rtt", "--mode", "block", "--size", "0", "--messages", "20"];
    assert_done(&run(&place, &args));
    let args = ["run", "--mechanism", "pipe", "--mode", "batch", "--batch", "7", "--messages", "100", "--json"];
    assert_eq!(json_of(&run(&place, &args).stdout)["batch"], 7);
}

#[test]
fn bad_input_is_found_before_anything_is_measured() {
    let place = Place::new();
    let of_run = |more: &[&str]| -> Vec<String> {
        let known: &[&str] = &["run", "--mechanism", "pipe"];
        known.iter().chain(more).map(|&word| word.to_owned()).collect()
    };
    let words = |words: &[&str]| -> Vec<String> { words.iter().map(|&word| word.to_owned()).collect() };
    let cases = [
        (words(&["--only", "rtt-spn"]), "did you mean `rtt-spin`"),
        (words(&["--only", "tachyom"]), "did you mean `tachyon`"),
        (words(&["--only", "carrier pigeon"]), "no row has `carrier pigeon`"),
        (words(&["--only", "one-way-64M"]), "with --full"),
        (words(&["--quick", "--only", "rtt-hybrid"]), "without --quick"),
        (words(&["--quick", "--full"]), "cannot be used with"),
        (words(&["--cpus", "0"]), "two different processors"),
        (words(&["--cpus", "0,0"]), "two different processors"),
        (words(&["--cpus", "0,9999"]), "processor 9999 may not be used"),
        (words(&["--cpus", "0,1", "--unpinned"]), "cannot be used with"),
        (words(&["--time", "soon"]), "not a duration"),
        (words(&["--time", "0"]), "nothing to measure"),
        (words(&["--rounds", "4"]), "5"),
        (words(&["--filter", "ring"]), "--filter"),
        (words(&["--html", "-"]), "a file's name"),
        (words(&["run", "--messages", "5"]), "--mechanism"),
        (words(&["run", "--mechanism", "pipes", "--messages", "5"]), "did you mean `pipe`"),
        (of_run(&["--messages", "0"]), "--messages 0"),
        (of_run(&["--messages", "5", "--size", "12"]), "not a multiple of 8"),
        (of_run(&["--messages", "5", "--size", "2M", "--capacity", "1M"]), "does not fit"),
        (of_run(&["--messages", "5", "--size", "huge"]), "not a size"),
        (of_run(&["--messages", "5", "--batch", "2"]), "--mode batch"),
        (of_run(&["--messages", "5", "--test", "rtt", "--mode", "each"]), "for one-way"),
        (of_run(&["--messages", "5", "--test", "dance"]), "dance"),
    ];
    for (args, said) in cases {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        assert_failed(&run(&place, &args), 2, said);
    }
    assert_failed(&run(&place, &["--only", "rtt-spin/tachyon"]), 1, "tachyon: not built (make bench-peers)");
    assert_failed(&run(&place, &["--only", "rtt-block/raw-flag"]), 1, "nothing was measured");
    // What it cannot do is found out by asking it.
    assert_failed(&run(&place, &["run", "--mechanism", "futex", "--messages", "5"]), 1, "futex cannot do one-way");
    let pipe = of_run(&["--messages", "5", "--size", "0"]);
    let pipe: Vec<&str> = pipe.iter().map(String::as_str).collect();
    assert_failed(&run(&place, &pipe), 1, "it can do one-way each or batch or block");
    assert_failed(&run(&place, &["run", "--mechanism", "tachyon", "--messages", "5"]), 1, "make bench-peers");
}

#[test]
fn files_that_cannot_be_written_or_read_are_found_out_first() {
    let place = Place::new();
    for option in ["--json", "--html"] {
        assert_failed(&run(&place, &["--full", option, "/no/such/directory/file"]), 6, "cannot write /no/such");
        assert_failed(&run(&place, &["--full", option, "/"]), 1, "cannot write /");
    }
    assert_failed(&run(&place, &["--full", "--compare", "/no/such/file"]), 6, "/no/such/file");
    assert_failed(&run(&place, &["--full", "--resume", "/no/such/directory/file"]), 6, "cannot write /no/such");
    for (text, said) in [("{", "not JSON"), ("{}", "no `schema`"), (r#"{"schema": 77}"#, "schema 77")] {
        let file = place.file("wrong.json", text.as_bytes());
        assert_failed(&run(&place, &["--full", "--compare", &file]), 1, said);
        assert_failed(&run(&place, &["--from", &file]), 1, said);
    }
    // Something that is no file is written as it is.
    assert_done(&measure(&place, &["--json", "/dev/null"]));
    assert!(!Path::new("/dev/null").is_file());
    assert_eq!(files(&place), ["wrong.json"]);
}

#[test]
fn progress_is_shown_on_a_terminal_only() {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let place = Place::new();
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let terminal = || std::fs::OpenOptions::new().read(true).write(true).open(&name).unwrap();
    // Held open until the end, so that what was said stays readable.
    let held = terminal();
    let mut command = bench(&place, &["--quick", "--time", "1s", "--only", "rtt-block/pipe"]);
    let output = finish(command.env("TERM", "xterm").stderr(terminal()).spawn().unwrap());
    assert_eq!(output.status.code(), Some(0));
    let said = heard(&master, "rtt-block");
    assert!(said.contains("ETA"), "{said}");
    // Not beside the tables, which may go to a file.
    assert!(!stdout(&output).contains("ETA"));
    drop(held);
}

#[test]
fn a_closed_output_is_no_reason_to_panic() {
    let place = Place::new();
    let json = path(&place, "run.json");
    assert_done(&measure(&place, &["--json", &json]));
    for args in [&["--list"][..], &["--from", &json], &["--from", &json, "--json"], &["--help"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = finish(bench(&place, args).stdout(writer).spawn().unwrap());
        assert_eq!(told(&output), (Some(0), String::new()), "{args:?}");
    }
}

/// A report as it was written, with every time of the rows of `mechanism` multiplied.
fn doctored(place: &Place, report: &Value, mechanism: &str, by: f64) -> String {
    let mut report = report.clone();
    for row in report["rows"].as_array_mut().unwrap() {
        if row["name"] == mechanism {
            for (at, ns) in row["figures"]["rounds_ns"].as_array_mut().unwrap().iter_mut().enumerate() {
                // Some noise: 1 % up and down.
                *ns = json!(1000.0 * by * (1.0 + 0.01 * (at % 3) as f64));
            }
        }
    }
    place.file(&format!("{mechanism}-{by}.json"), report.to_string().as_bytes())
}

#[test]
fn a_comparison_tells_slower_from_noise() {
    let place = Place::new();
    let json = path(&place, "run.json");
    // Of one placement, whatever the machine does meanwhile.
    assert_done(&measure(&place, &["--json", &json, "--unpinned"]));
    let mut report = json_of(&std::fs::read(&json).unwrap());
    assert!(report["placement"]["none"].as_str().unwrap().contains("not pinned"));
    // A floor that does not move: 100 ns in every round.
    for row in report["rows"].as_array_mut().unwrap() {
        let rounds = row["figures"]["rounds_ns"].as_array_mut().unwrap();
        rounds.truncate(5);
        rounds.iter_mut().for_each(|ns| *ns = json!(100.0));
    }
    let old = doctored(&place, &report, "pipe", 1.0);
    let compare = |new: &str| run(&place, &["--from", new, "--compare", &old]);

    let slower = compare(&doctored(&place, &report, "pipe", 1.5));
    assert_failed(&slower, 1, "something got slower");
    let text = stdout(&slower);
    assert!(text.contains("Slower than before") && text.contains("rtt-block/pipe"), "{text}");
    assert!(text.contains("+50.0 %") && text.contains("futex"), "{text}");

    let faster = compare(&doctored(&place, &report, "pipe", 0.5));
    assert_done(&faster);
    assert!(stdout(&faster).contains("Faster than before"));
    let noise = compare(&doctored(&place, &report, "pipe", 1.01));
    assert_done(&noise);
    assert!(stdout(&noise).contains("0 rows changed by more than the noise"));
    assert_done(&compare(&old));

    let mut elsewhere = report.clone();
    elsewhere["machine"]["cpu"] = json!("another processor");
    let warned = compare(&place.file("elsewhere.json", elsewhere.to_string().as_bytes()));
    assert!(stdout(&warned).contains("warning: the processor differs"), "{}", stdout(&warned));
}

#[test]
fn a_bar_that_is_missed_fails_the_check() {
    let place = Place::new();
    let json = path(&place, "run.json");
    assert_done(&measure(&place, &["--json", &json]));
    let mut report = json_of(&std::fs::read(&json).unwrap());
    let check =
        |report: &Value| run(&place, &["--check", "--from", &place.file("bars.json", report.to_string().as_bytes())]);
    report["bars"][0]["met"] = json!(true);
    assert_done(&check(&report));
    report["bars"][0]["met"] = json!(false);
    assert_failed(&check(&report), 1, "a bar was missed");
}

/// A run that is interrupted as soon as it has kept a group, and one that goes on from there.
fn interrupted_by(number: Signal, expected: Option<i32>) {
    let place = Place::new();
    let (kept, json) = (path(&place, "run.part"), path(&place, "run.json"));
    let args = ["--quick", "--only", "rtt-block/pipe", "wake/pipe", "--time", "3s", "--resume", &kept, "--json", &json];
    let mut child = bench(&place, &args).spawn().unwrap();
    until("a group is kept", || std::fs::metadata(&kept).is_ok_and(|file| file.len() > 0));
    let children = descendants(child.id());
    signal(&child, number);
    let status = ended(&mut child);
    assert_eq!(status.code(), expected, "{}", told(&child.wait_with_output().unwrap()).1);
    until("its processes are gone", || children.iter().all(|pid| !pid.exists()));
    assert!(!Path::new(&json).exists(), "no report of half a run");
    let kept_rows = json_of(&std::fs::read(&kept).unwrap())["finished"][0]["rows"].clone();

    assert_failed(&run(&place, &[&args[..], &["--swap"]].concat()), 1, "another run's state");
    assert_done(&run(&place, &args));
    let report = json_of(&std::fs::read(&json).unwrap());
    assert_eq!(ids(&report), ["rtt-block/pipe", "wake/pipe"]);
    assert_eq!(rounds(&report["rows"][0]), rounds(&kept_rows[0]), "the first group was not measured again");
    let left: Vec<_> = files(&place).into_iter().filter(|name| name.starts_with('.')).collect();
    // A process that is killed cannot remove what is half written.
    assert!(left.len() <= usize::from(number == Signal::KILL), "{left:?}");
}

/// The processes below this one, as places in /proc.
fn descendants(pid: u32) -> Vec<PathBuf> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let pids = children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok());
    pids.flat_map(|pid| [vec![PathBuf::from(format!("/proc/{pid}"))], descendants(pid)].concat()).collect()
}

#[test]
fn ctrl_c_keeps_what_was_measured() {
    interrupted_by(Signal::INT, Some(130));
}

#[test]
fn a_killed_run_keeps_what_was_measured() {
    interrupted_by(Signal::KILL, None);
}

/// Each kind of the groups of topics, of which each row runs; the peers are not built here, and are said to be missing.
#[test]
fn topics_select_and_inboxes_are_measured_and_listed() {
    let place = Place::new();
    let (json, html) = (path(&place, "run.json"), path(&place, "run.html"));
    let rows = [
        "topic-readers-3-64K/topic-readers",
        "latest-64-1us/topic-latest",
        "select-rtt-block/select-16",
        "select-rtt-block/epoll-16",
        "inbox-producers-32/inbox-4",
        "inbox-producers-32/rings-4",
    ];
    let args = [&["--time", "50ms", "--json", &json, "--html", &html, "--only"], rows.as_slice()].concat();
    assert_done(&run(&place, &args));
    let report = json_of(&std::fs::read(&json).unwrap());
    let mut measured = ids(&report);
    measured.sort_unstable();
    let mut wanted = rows;
    wanted.sort_unstable();
    assert_eq!(measured, wanted);
    for row in report["rows"].as_array().unwrap() {
        assert!(row["failure"].is_null() && row["figures"]["operations"].as_u64().unwrap() > 0, "{row}");
    }
    let shares = |id: &str| {
        let row = report["rows"].as_array().unwrap().iter().find(|row| row["id"] == id).unwrap();
        row["figures"]["ratios"].as_array().unwrap().clone()
    };
    for (id, name) in [(rows[0], "slowest reader / mean"), ("inbox-producers-32/inbox-4", "slowest producer / mean")] {
        let of = shares(id);
        assert!(of[0][0] == name && (0.0..=1.0).contains(&of[0][1].as_f64().unwrap()), "{of:?}");
    }
    let page = std::fs::read_to_string(&html).unwrap();
    assert!(page.contains("Many to one") && page.contains("three readers") && page.contains("four producers at once"));

    let list = run(&place, &["--list"]);
    assert_done(&list);
    let list = stdout(&list);
    let groups = ["topic-readers-3-64K", "latest-4K-10us", "select-32-each", "inbox-producers-64K", "topic-python-32"];
    let peers =
        ["zmq-pubsub-nodrop", "zmq-conflate", "zmq-poll-128", "redis-get", "iceoryx2-producers", "queues-python"];
    for name in groups.into_iter().chain(peers).chain(["rings-4", "epoll-128"]) {
        assert!(list.lines().any(|line| line.split_whitespace().next() == Some(name)), "{name}: {list}");
    }
    for peer in peers {
        let line = list.lines().find(|line| line.split_whitespace().next() == Some(peer)).unwrap();
        assert!(line.contains("missing: not built"), "{line}");
    }
}
