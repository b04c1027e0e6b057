//! `ramway bench` and `ramway demo`: how they find the program `ramway-bench`, and what they do without it.

mod common;

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use common::{Place, assert_done, assert_failed, finish, signal, until};
use rustix::process::Signal;
use serde_json::Value;

/// A copy of the command in a directory of its own, so that no `ramway-bench` of this build is beside it.
fn alone(place: &Place) -> PathBuf {
    let directory = place.files.join("bin");
    fs::create_dir_all(&directory).unwrap();
    let ramway = directory.join("ramway");
    write_program(&ramway, fs::File::open(env!("CARGO_BIN_EXE_ramway")).unwrap());
    ramway
}

/// Writes a program, by another process: were this one to have it open for writing, a test that starts a process at that
/// moment would hand the descriptor on, and the program could not be run ("text file busy") until that process runs.
fn write_program(file: &Path, from: impl Into<Stdio>) {
    let mut shell = Command::new("sh");
    shell.args(["-c", "cat > \"$0\" && chmod 755 \"$0\""]).arg(file).stdin(from);
    assert!(shell.status().unwrap().success(), "writing {}", file.display());
}

/// A program `ramway-bench` of these lines, in this directory.
fn program(directory: &Path, lines: &str) {
    fs::create_dir_all(directory).unwrap();
    let (from, mut to) = std::io::pipe().unwrap();
    to.write_all(format!("#!/bin/sh\n{lines}\n").as_bytes()).unwrap();
    drop(to);
    write_program(&directory.join("ramway-bench"), from);
}

fn command(place: &Place, ramway: &Path, path: &Path, args: &[&str]) -> Command {
    let mut command = common::runner::program(ramway);
    // The shell of the program's first line is named by its whole path.
    command.args(args).env("PATH", path).env("RAMWAY_DIR", &place.files).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(place: &Place, ramway: &Path, path: &Path, args: &[&str]) -> Output {
    finish(command(place, ramway, path, args).spawn().unwrap())
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn without_the_program_it_says_how_to_get_it() {
    let place = Place::new();
    let (ramway, nothing) = (alone(&place), place.files.join("nothing"));
    for args in [&["bench"][..], &["bench", "--help"], &["bench", "--quick", "--only", "ring"]] {
        let output = run(&place, &ramway, &nothing, args);
        assert_failed(&output, 6, "cargo install ramway-bench");
    }
    // Neither a directory nor a file that is not executable is a program, nor is what lies in the working directory.
    fs::create_dir_all(nothing.join("ramway-bench")).unwrap();
    fs::write(place.files.join("bin/ramway-bench"), "#!/bin/sh\necho wrong\n").unwrap();
    program(&place.files.join("here"), "echo wrong");
    let mut command = command(&place, &ramway, &nothing, &["bench"]);
    command.current_dir(place.files.join("here")).env("PATH", format!("{}::.", nothing.display()));
    assert_failed(&finish(command.spawn().unwrap()), 6, "not installed");
}

#[test]
fn the_program_beside_the_command_comes_before_that_of_the_path() {
    let place = Place::new();
    let (ramway, path) = (alone(&place), place.files.join("path"));
    program(&path, r#"printf 'path:'; printf ' <%s>' "$@""#);
    let output = run(&place, &ramway, &path, &["bench", "--only", "a b", "--json", "-", "run", "--help"]);
    assert_eq!(
        (output.status.code(), stdout(&output).as_str()),
        (Some(0), "path: <--only> <a b> <--json> <-> <run> <--help>")
    );
    let output = run(&place, &ramway, &path, &["--color", "never", "bench"]);
    assert_eq!(stdout(&output), "path: <--color=never>");
    program(&place.files.join("bin"), "echo beside");
    assert_eq!(stdout(&run(&place, &ramway, &path, &["bench"])), "beside\n");
    // A link to the command finds what is beside the command itself, as where a package manager links it.
    let link = place.files.join("link");
    symlink(&ramway, &link).unwrap();
    assert_eq!(stdout(&run(&place, &link, &path, &["bench"])), "beside\n");
}

#[test]
fn its_exit_code_and_its_signal_are_the_commands() {
    let place = Place::new();
    let (ramway, path) = (alone(&place), place.files.join("path"));
    program(&path, "echo said >&2; exit 37");
    let output = run(&place, &ramway, &path, &["bench"]);
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(37), b"said\n".as_slice()));
    program(&path, "kill -KILL $$");
    assert_eq!(run(&place, &ramway, &path, &["bench"]).status.signal(), Some(9));
    program(&path, "exec sleep 100");
    let path = format!("{}:{}", path.display(), std::env::var("PATH").unwrap());
    let mut child = command(&place, &ramway, Path::new(&path), &["bench"]).spawn().unwrap();
    let image = PathBuf::from(format!("/proc/{}/comm", child.id()));
    until("the program runs", || fs::read_to_string(&image).is_ok_and(|name| name.trim() == "sleep"));
    signal(&child, Signal::INT);
    assert_eq!(child.wait().unwrap().signal(), Some(2));
}

#[test]
fn the_demo_streams_also_without_it() {
    let place = Place::new();
    let (ramway, path) = (alone(&place), place.files.join("path"));
    let input = place.file("input", &[7; 100_000]);
    let output = run(&place, &ramway, &path, &["demo", &input]);
    assert!(output.status.success() && stdout(&output).contains("they match"), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("cargo install ramway-bench"), "{output:?}");
    let output = run(&place, &ramway, &path, &["demo", "--json", &input]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["stream"]["matches"], &report["measured"]), (&Value::Bool(true), &Value::Null));
    assert_done(&run(&place, &ramway, &path, &["demo", "--no-bench", &input]));
}

#[test]
fn the_demo_shows_what_it_measured() {
    let place = Place::new();
    let (ramway, path) = (alone(&place), place.files.join("path"));
    let input = place.file("input", b"some bytes");
    program(&path, r#"[ "$*" = "demo --time 1500ms" ] && echo "the table""#);
    let output = run(&place, &ramway, &path, &["demo", "--time", "1500ms", &input]);
    assert!(output.status.success() && stdout(&output).ends_with("\nthe table\n"), "{output:?}");
    program(&path, r#"[ "$*" = "demo --time 12000ms --json" ] && echo '{"rows": [1]}'"#);
    let output = run(&place, &ramway, &path, &["demo", "--json", &input]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["measured"]["rows"][0], 1);
    program(&path, "echo no JSON");
    assert_failed(&run(&place, &ramway, &path, &["demo", "--json", &input]), 1, "not JSON");
    program(&path, "exit 3");
    assert_failed(&run(&place, &ramway, &path, &["demo", &input]), 1, "cannot measure");
}

#[test]
fn an_interrupted_demo_leaves_no_measurement_behind() {
    let place = Place::new();
    let (ramway, path) = (alone(&place), place.files.join("path"));
    let (input, id) = (place.file("input", b"some bytes"), place.files.join("id"));
    program(&path, &format!("echo $$ > {}.part && mv {0}.part {0} && exec sleep 100", id.display()));
    let path = format!("{}:{}", path.display(), std::env::var("PATH").unwrap());
    let child = command(&place, &ramway, Path::new(&path), &["demo", &input]).spawn().unwrap();
    until("it measures", || id.exists());
    signal(&child, Signal::INT);
    let output = finish(child);
    assert_eq!(output.status.code(), Some(130));
    let measuring = PathBuf::from(format!("/proc/{}", fs::read_to_string(id).unwrap().trim()));
    until("the measurement has ended", || !measuring.exists());
}
