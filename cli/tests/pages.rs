//! What the pages of the site tell a reader to type is there: the subcommands and options of `ramway`, make's targets, cargo's
//! packages and programs, scripts. What the lines do is the concern of the tests that run the programs.

#[path = "../../core/src/runner.rs"]
#[allow(dead_code, reason = "these tests do not run themselves")]
mod runner;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The pages that docs/SUMMARY.md names, relative to the root.
fn pages() -> Vec<PathBuf> {
    let summary = fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let links = summary.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link);
    links.map(|link| link.strip_prefix("../").map_or_else(|| Path::new("docs").join(link), PathBuf::from)).collect()
}

/// The commands of a line, each as its words. A redirection and its file are no words.
fn commands(line: &str) -> Vec<Vec<String>> {
    let (mut all, mut words, mut word, mut quote) = (Vec::new(), Vec::new(), None::<String>, None);
    // A space behind the line ends its last word.
    let characters: Vec<char> = line.chars().chain([' ']).collect();
    for (at, &c) in characters.iter().enumerate() {
        match quote {
            Some(end) if c == end => quote = None,
            Some(_) => word.get_or_insert_default().push(c),
            None if c == '#' && word.is_none() => break,
            None if c == '\'' || c == '"' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() || "|&;".contains(c) => {
                words.extend(word.take());
                // `2>&1` is one word.
                if "|&;".contains(c) && (at == 0 || characters[at - 1] != '>') {
                    all.push(std::mem::take(&mut words));
                }
            }
            None => word.get_or_insert_default().push(c),
        }
    }
    all.push(words);
    for words in &mut all {
        while let Some(at) = words.iter().position(|word| [">", "<", ">>"].contains(&word.as_str())) {
            words.drain(at..words.len().min(at + 2));
        }
        // Variables for the command alone.
        let is_variable = |word: &String| {
            word.split_once('=').is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
        };
        while words.first().is_some_and(is_variable) {
            words.remove(0);
        }
    }
    all.retain(|words| !words.is_empty());
    all
}

#[test]
fn a_line_is_taken_apart_as_a_shell_does() {
    let line = "A=b tail -f log | ramway call x 1 --data '{\"a\": \"b c\"}' > \"a file\" & # either first";
    assert_eq!(
        commands(line),
        [vec!["tail", "-f", "log"], vec!["ramway", "call", "x", "1", "--data", "{\"a\": \"b c\"}"]]
    );
}

/// The word after an option.
fn value<'a>(words: &'a [String], options: &[&str]) -> Option<&'a str> {
    let at = words.iter().position(|word| options.contains(&word.as_str()))?;
    words.get(at + 1).map(String::as_str)
}

/// A manifest of the repository that says this in a line of its own.
fn manifest(line: &str) -> Option<String> {
    let git = Command::new("git").args(["ls-files", "*Cargo.toml"]).current_dir(root()).output().expect("git runs");
    let found = String::from_utf8(git.stdout).unwrap();
    found
        .lines()
        .filter_map(|path| fs::read_to_string(root().join(path)).ok())
        .find(|text| text.lines().any(|found| found == line))
}

/// Why nobody could type this, if nobody could.
fn wrong(page: &Path, words: &[String]) -> Option<String> {
    match words[0].as_str() {
        // `ramway-bench` has options of its own, and the pages' shown ones are those of its own tests.
        "ramway" if words[1] == "bench" => None,
        // Read up to the end, but not done.
        "ramway" => {
            let mut command = runner::program(env!("CARGO_BIN_EXE_ramway"));
            let done = command.args(&words[1..]).arg("--help").stdin(Stdio::null()).output().expect("ramway runs");
            (!done.status.success()).then(|| String::from_utf8_lossy(&done.stderr).into_owned())
        }
        "make" => {
            // Without a folder the page's own is meant, or the clone's.
            let folder = value(words, &["-C"]);
            let files = match folder {
                Some(folder) => vec![root().join(folder.trim_start_matches("../ramway/"))],
                None => vec![root().join(page.parent().unwrap()), root()],
            };
            let makefiles = files.iter().filter_map(|folder| fs::read_to_string(folder.join("Makefile")).ok());
            let makefile = makefiles.collect::<String>();
            let is_target = |word: &&String| !word.contains('=') && *word != "-C" && Some(word.as_str()) != folder;
            let known = |target: &str| {
                makefile.lines().any(|line| {
                    line.split_once(':').is_some_and(|(names, _)| names.split_whitespace().any(|name| name == target))
                })
            };
            words[1..]
                .iter()
                .filter(is_target)
                .find(|target| !known(target))
                .map(|target| format!("no target {target}"))
        }
        "cargo" => {
            let of = value(words, &["-p", "--package"]).map(|name| (name, manifest(&format!("name = \"{name}\""))));
            match (of, value(words, &["--bin"])) {
                (Some((name, None)), _) => Some(format!("there is no package {name}")),
                (Some((name, Some(manifest))), Some(bin))
                    if !manifest.contains(&format!("[[bin]]\nname = \"{bin}\"\n")) =>
                {
                    Some(format!("{name} has no program {bin}"))
                }
                _ => None,
            }
        }
        "python" | "python3" | "node" | "sh" => {
            let script = words.get(1).filter(|word| word.contains('/'))?;
            (!root().join(script).exists()).then(|| format!("{script} is not there"))
        }
        program if program.starts_with("target/release/") => {
            let name = program.trim_start_matches("target/release/");
            manifest(&format!("name = \"{name}\"")).is_none().then(|| format!("nothing builds {program}"))
        }
        // What is the reader's own, the system's or another project's; Go's, whose tests run its lines.
        program => {
            let others = [
                "./a.out",
                "PROGRAM",
                "apt",
                "c++",
                "cc",
                "docker",
                "dotnet",
                "git",
                "go",
                "java",
                "mvn",
                "npm",
                "openssl",
                "perf",
                "pip",
                "printf",
                "ramway-bridge",
                "seq",
                "slow-consumer",
                "sudo",
                "tail",
                "target/zig/ramway-zig",
                "unzip",
                "zig",
                "zig-out/bin/first",
            ];
            (!others.contains(&program)).then(|| format!("who runs {program}?"))
        }
    }
}

#[test]
fn what_is_not_there_is_found() {
    for line in [
        "ramway subscribe-to news",
        "ramway sub news --formatted lines",
        "ramway sub news --format rows",
        "make -C bindings/python nothing",
        "make nothing",
        "cargo run -p ramway-nothing",
        "cargo run -p ramway-examples --bin nothing",
        "python3 examples/nothing.py",
        "target/release/nothing",
        "nothing",
    ] {
        let all = commands(line);
        assert!(all.iter().any(|words| wrong(Path::new("README.md"), words).is_some()), "{line}");
    }
}

#[test]
fn what_the_pages_tell_to_type_is_there() {
    let (mut checked, mut found) = (0, Vec::new());
    for page in pages() {
        let text = fs::read_to_string(root().join(&page)).unwrap();
        let mut language = None;
        for line in text.lines() {
            if let Some(rest) = line.trim_start().strip_prefix("```") {
                language = if language.is_some() { None } else { Some(rest) };
            } else if language == Some("sh") {
                for words in commands(line) {
                    checked += 1;
                    found.extend(wrong(&page, &words).map(|why| format!("{}: {line}\n    {why}", page.display())));
                }
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert!(checked > 100, "only {checked} commands were found");
}
