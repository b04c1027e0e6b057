//! `digest` is run as a program, on real files, and compared with hashes that are computed here.

use sha2::{Digest, Sha256};
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const DIGEST: &str = env!("CARGO_BIN_EXE_digest");

/// A directory for one test's files, removed with what is in it.
struct Place(PathBuf);

impl Place {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ramway-digest-{test}-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    /// A file of `length` bytes that look like noise, other ones for each name.
    fn file(&self, name: impl AsRef<OsStr>, length: usize) -> PathBuf {
        let path = self.0.join(name.as_ref());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut state =
            name.as_ref().as_bytes().iter().fold(1, |hash: u64, &byte| hash * 31 % 0xffff_fffb + byte as u64);
        let bytes: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
        .take(length)
        .collect();
        fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn digest<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Output {
    Command::new(DIGEST).args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// What `sha256sum` prints for these files, in this order; names without anything to escape.
fn expected(files: &[PathBuf]) -> Vec<u8> {
    let mut lines = Vec::new();
    for file in files {
        for byte in Sha256::digest(fs::read(file).unwrap()) {
            write!(lines, "{byte:02x}").unwrap();
        }
        lines.extend([b"  ", file.as_os_str().as_bytes(), b"\n"].concat());
    }
    lines
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn succeeded(output: &Output) {
    assert!(output.status.success(), "{}: {}", output.status, text(&output.stderr));
}

/// Files of all lengths around the borders of chunks of 64 KiB, some directories deep.
fn tree(place: &Place) -> Vec<PathBuf> {
    let lengths = [0, 1, 4095, 4096, 4097, 65_535, 65_536, 65_537, 131_072, 3_000_000];
    let mut files: Vec<PathBuf> = lengths.iter().map(|length| place.file(format!("a/{length}"), *length)).collect();
    files.extend((0..100).map(|n| place.file(format!("b/{}/c/{n}", n % 7), n * n * 13)));
    files.push(place.file("b.txt", 100)); // before b/ in the order of bytes, after it in that of paths
    files.push(place.file(OsStr::from_bytes(b"not \xff UTF-8"), 70_000));
    files.sort_by(|a, b| a.as_os_str().as_bytes().cmp(b.as_os_str().as_bytes()));
    files
}

#[test]
fn it_prints_what_sha256sum_prints_whatever_the_threads_chunks_and_memory() {
    let place = Place::new("tree");
    let files = tree(&place);
    let expected = expected(&files);
    let root = place.0.to_str().unwrap();
    for options in [
        "",
        "--chunk 64K",
        "--chunk 4K --readers 7 --hashers 5",
        "--chunk 64K --max-memory 64K --readers 4 --hashers 1", // one chunk is all there is
        "--chunk 64K --max-memory 200K --readers 1 --hashers 4",
        "--no-pool",
        "--no-pool --chunk 64K --readers 3",
        "--no-pool --pool --chunk 64K", // the last one counts
    ] {
        let output = digest(options.split_whitespace().chain([root]));
        succeeded(&output);
        assert!(output.stdout == expected, "with {options}: {}", text(&output.stdout));
        let stderr = text(&output.stderr);
        assert!(stderr.contains(&format!("{} files, ", files.len())), "{stderr}");
        let pool = !options.starts_with("--no-pool") || options.contains(" --pool");
        assert_eq!(stderr.contains(" from the thread's cache; "), pool, "with {options}: {stderr}");
    }
    // The same by name, one twice, in another order.
    let named = files.iter().rev().chain(&files[..1]);
    let output = digest(named.map(|path| path.as_os_str()).chain([OsStr::new("--quiet")]));
    succeeded(&output);
    assert!(output.stdout == expected && output.stderr.is_empty(), "{}", text(&output.stderr));
}

#[test]
fn sha256sum_accepts_it_also_where_names_are_escaped() {
    let place = Place::new("names");
    place.file("plain", 10);
    place.file("two\nlines", 20);
    place.file("back\\slash\r", 30);
    let output = digest([&place.0]);
    succeeded(&output);
    let list = place.0.join("list");
    fs::write(&list, &output.stdout).unwrap();
    match Command::new("sha256sum").arg("--check").arg(&list).output() {
        Ok(check) => {
            assert!(check.status.success(), "{}{}", text(&check.stdout), text(&check.stderr));
            assert_eq!(text(&check.stdout).matches(": OK").count(), 3);
        }
        // Without coreutils: the escapes themselves.
        Err(_) => {
            let lines = text(&output.stdout);
            assert!(lines.contains("two\\nlines") && lines.contains("back\\\\slash\\r"), "{lines}");
            assert_eq!(lines.lines().filter(|line| line.starts_with('\\')).count(), 2);
        }
    }
}

#[test]
fn no_more_memory_is_used_than_it_may_and_readers_wait_instead() {
    let place = Place::new("limit");
    let file = place.file("long", 4_000_000);
    let options = ["--chunk", "256K", "--max-memory", "512K", "--readers", "4", "--hashers", "1"];
    let files: Vec<PathBuf> = (0..4).map(|n| place.file(format!("{n}"), 1_000_000)).chain([file]).collect();
    let output = digest(options.iter().map(OsStr::new).chain([place.0.as_os_str()]));
    succeeded(&output);
    assert!(output.stdout == expected(&files));
    let stderr = text(&output.stderr);
    // Two chunks are all there is, and five threads would have them.
    assert!(stderr.contains("(at most 512.0 KiB)") && stderr.contains("limit: 512.0 KiB"), "{stderr}");
    let waits: u64 = stderr.split_once("waited for memory: ").unwrap().1.lines().next().unwrap().parse().unwrap();
    assert!(waits > 0, "{stderr}");
}

#[test]
fn a_file_that_says_it_is_empty_is_read_to_its_end() {
    let version = PathBuf::from("/proc/version");
    if fs::metadata(&version).is_ok_and(|metadata| metadata.len() == 0) {
        let output = digest([&version]);
        succeeded(&output);
        assert_eq!(text(&output.stdout), text(&expected(&[version])));
    }
}

#[test]
fn what_cannot_be_read_is_named_and_the_rest_is_hashed() {
    let place = Place::new("unreadable");
    let good = [place.file("a", 100_000), place.file("z", 5)];
    let missing = place.0.join("missing");
    let closed = place.file("closed", 10);
    let shut = place.0.join("shut");
    fs::create_dir(&shut).unwrap();
    // A copy where also somebody else may run it: root can read everything.
    let program = place.0.join("program");
    // By another process: a test that starts one at that moment would hand on what this one has open for writing, and
    // nobody can run a program that is.
    assert!(Command::new("cp").arg(DIGEST).arg(&program).status().unwrap().success());
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&place.0, Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&closed, Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(&shut, Permissions::from_mode(0o000)).unwrap();

    let mut command = Command::new(&program);
    command.arg("--quiet").args(&good).args([&missing, &closed, &shut, Path::new("/proc/self/mem")]);
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        command.uid(65_534).gid(65_534);
    }
    let output = command.output().unwrap();
    fs::set_permissions(&shut, Permissions::from_mode(0o755)).unwrap();

    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stdout), text(&expected(&good)));
    let stderr = text(&output.stderr);
    for (path, reason) in [
        (missing.as_path(), "No such file or directory"),
        (&closed, "Permission denied"),
        (&shut, "Permission denied"),
        (Path::new("/proc/self/mem"), "Input/output error"), // opened, and not readable at its beginning
    ] {
        let line = format!("digest: {}: {reason}", path.display());
        assert_eq!(stderr.lines().filter(|said| said.starts_with(&line)).count(), 1, "{line}: {stderr}");
    }
    assert!(stderr.ends_with("digest: 4 could not be read\n"), "{stderr}");
}

#[test]
fn it_ends_without_complaint_when_nobody_reads_on() {
    let place = Place::new("pipe");
    for n in 0..2000 {
        place.file(format!("a name that makes the lines long enough to fill any pipe, number {n:04}"), 10);
    }
    place.file("z", 3_000_000);
    for options in ["--pool", "--no-pool", "--max-memory=1M"] {
        let mut child = Command::new(DIGEST)
            .arg(options)
            .arg(&place.0)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
        assert!(first.ends_with("number 0000\n"), "{first}");
        let output = child.wait_with_output().unwrap(); // would hang with a thread that still waits
        succeeded(&output);
        assert_eq!(text(&output.stderr), "");
    }
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    let place = Place::new("full");
    let file = place.file("a", 10);
    let Ok(full) = File::options().write(true).open("/dev/full") else { return };
    let output = Command::new(DIGEST).arg(file).stdout(full).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).starts_with("digest: standard output: No space left on device"));
}

#[test]
fn nothing_to_hash_is_nothing_printed() {
    let place = Place::new("empty");
    let output = digest([place.0.as_os_str(), OsStr::new("--quiet")]);
    succeeded(&output);
    assert!(output.stdout.is_empty() && output.stderr.is_empty());
}

#[test]
fn wrong_arguments_are_named_with_what_is_expected() {
    for (arguments, code, said) in [
        ("", 2, "<PATH>..."),
        (
            "--chunk 12X .",
            2,
            "'12X' for '--chunk <SIZE>': expected a number of bytes, or one with K, M or G, such as 64K",
        ),
        ("--chunk 4095 .", 2, "expected a size from 4K to 1G"),
        ("--chunk 2G .", 2, "expected a size from 4K to 1G"),
        ("--max-memory 99999999999G .", 2, "expected 1 TiB at most"),
        ("--readers 0 .", 2, "0 is not in 1..=256"),
        ("--hashers 257 .", 2, "257 is not in 1..=256"),
        ("--no-pool --max-memory 1M .", 2, "'--no-pool' cannot be used with '--max-memory <SIZE>'"),
        ("--fast .", 2, "unexpected argument '--fast'"),
        ("--max-memory 0 .", 1, "digest: --max-memory: max_bytes is 0"),
        ("--max-memory 512K .", 1, "digest: --max-memory is too little for one chunk of 1048576 bytes"),
    ] {
        let output = digest(arguments.split_whitespace());
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments}: {stderr}");
        assert!(stderr.contains(said), "{arguments}: {stderr}");
        assert!(output.stdout.is_empty());
    }
}
