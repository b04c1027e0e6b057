//! Every page of the repository: what it links to is there, and the front page stays short.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Every Markdown file that git tracks, relative to the root.
fn pages() -> Vec<String> {
    let git = Command::new("git").args(["ls-files", "*.md"]).current_dir(root()).output().expect("git runs");
    assert!(git.status.success(), "{}", String::from_utf8_lossy(&git.stderr));
    String::from_utf8(git.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// The lines outside of code blocks.
fn prose(page: &Path) -> Vec<String> {
    let mut in_code = false;
    let text = fs::read_to_string(page).unwrap();
    let prose = text.lines().filter(|line| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        !in_code && !fence
    });
    prose.map(str::to_owned).collect()
}

/// What a heading is called in a link.
fn anchor(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || " -_".contains(*c);
    heading.trim_start_matches('#').trim().to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-")
}

#[test]
fn what_the_pages_link_to_is_there() {
    let (mut links, mut wrong) = (0, Vec::new());
    for page in pages() {
        let path = root().join(&page);
        let text = prose(&path).join("\n");
        for link in text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            links += 1;
            let (file, section) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            let has_section = || prose(&target).iter().any(|line| line.starts_with('#') && anchor(line) == section);
            if !target.exists() || (!section.is_empty() && !has_section()) {
                wrong.push(format!("{page} links to {link}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(links > 100, "only {links} links were found");
}

#[test]
fn the_front_page_is_short() {
    let lines = fs::read_to_string(root().join("README.md")).unwrap().lines().count();
    assert!(lines <= 150, "README.md has {lines} lines: move what is not for a newcomer to a page of its own");
}

/// The blocks of code of some lines, each with its language.
fn code(text: &str) -> Vec<(String, Vec<&str>)> {
    let mut blocks: Vec<(String, Vec<&str>)> = Vec::new();
    let mut in_code = false;
    for line in text.lines() {
        if let Some(language) = line.strip_prefix("```") {
            in_code = !in_code;
            if in_code {
                blocks.push((language.to_owned(), Vec::new()));
            }
        } else if in_code {
            blocks.last_mut().unwrap().1.push(line);
        }
    }
    blocks
}

/// The pages of the languages have programs that their own tests run.
#[test]
fn what_the_guide_shows_of_a_language_is_part_of_a_program_of_that_language_s_page() {
    let read = |page: &str| fs::read_to_string(root().join(page)).unwrap();
    let guide = read("docs/guides/rpc-languages.md");
    let mut shown = 0;
    for (language, block) in code(&guide) {
        let name = match language.as_str() {
            "c" | "cpp" => "capi/README.md".to_owned(),
            "js" => "docs/guides/javascript.md".to_owned(),
            other => format!("bindings/{other}/README.md"),
        };
        let page = read(&name);
        let is_part = |(of, program): &(String, Vec<&str>)| {
            *of == language && program.windows(block.len()).any(|lines| lines == block.as_slice())
        };
        assert!(code(&page).iter().any(is_part), "no program of {name} has this:\n{}", block.join("\n"));
        shown += 1;
    }
    assert!(shown >= 17, "only {shown} blocks were found");
}

/// What a page of docs/start shows is a program that is run: one of that language's page, whose tests run it, or a file of the
/// repository. The lines for a shell are those of the language's page, or start a file that the page shows.
#[test]
fn what_the_first_pages_show_is_run_elsewhere() {
    let read = |page: &str| fs::read_to_string(root().join(page)).unwrap();
    // Compiled and run as it stands: as a documentation test, and by `installs` of bindings/csharp/test.sh.
    assert!(read("examples/src/lib.rs").contains("docs/start/rust.md"));
    assert!(read("bindings/csharp/test.sh").contains("docs/start/csharp.md"));
    let kotlin = read("bindings/kotlin/src/test/kotlin/dev/ramway/kotlin/start/Start.kt");
    let mut shown = 0;
    for (page, home) in [
        ("rust", "README.md"),
        ("python", "bindings/python/README.md"),
        ("javascript", "bindings/node/README.md"),
        ("c", "capi/README.md"),
        ("cpp", "capi/README.md"),
        ("go", "bindings/go/README.md"),
        ("java", "bindings/java/README.md"),
        ("kotlin", "bindings/kotlin/README.md"),
        ("csharp", "bindings/csharp/README.md"),
    ] {
        let (text, home) = (read(&format!("docs/start/{page}.md")), read(home));
        let at_home = code(&home);
        for (language, block) in code(&text) {
            shown += 1;
            let lines = block.join("\n");
            match language.as_str() {
                "rust" | "csharp" | "text" => {}
                "kotlin" => {
                    assert!(kotlin.split_once("\n\n").unwrap().1.trim_end() == lines, "not as in Start.kt:\n{lines}")
                }
                // The whole project has the dependency of the language's page, and the compiler that the library has.
                "xml" if block[0] == "<project>" => {
                    let own = read("bindings/kotlin/pom.xml");
                    let compiler = own.split_once("<kotlin.version>").unwrap().1.split_once('<').unwrap().0;
                    assert!(
                        lines.contains(&format!("<version>{compiler}</version>")),
                        "{page}: another Kotlin than {compiler}"
                    );
                    let lines: Vec<_> = block.iter().map(|line| line.trim()).collect();
                    let is_part = |(of, there): &(String, Vec<&str>)| {
                        let there: Vec<_> = there.iter().map(|line| line.trim()).collect();
                        of == "xml" && lines.windows(there.len()).any(|part| part == there)
                    };
                    assert!(at_home.iter().any(is_part), "{page}: another dependency than that of the language's page");
                    assert!(
                        read("scripts/packages/jvm.sh").contains("docs/start/kotlin.md xml"),
                        "{page}: who builds this?"
                    );
                }
                "sh" => {
                    let runs = [
                        "cargo run",
                        "cargo add ",
                        "python ",
                        "node ",
                        "java ",
                        "mvn ",
                        "./a.out",
                        "dotnet build",
                        "dotnet run",
                        "c++ ",
                    ];
                    for line in block {
                        let known = at_home.iter().any(|(of, there)| of == "sh" && there.contains(&line));
                        assert!(known || runs.iter().any(|run| line.starts_with(run)), "{page}: who runs this? {line}");
                    }
                }
                _ => assert!(
                    at_home.iter().any(|(of, program)| *of == language && *program == block),
                    "{page}: the page of the language has no such block:\n{lines}"
                ),
            }
        }
    }
    assert!(shown >= 36, "only {shown} blocks were found");
}
