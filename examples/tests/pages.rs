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
