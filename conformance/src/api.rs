//! One API in every language: what `docs/api/` lists, checked, and `docs/calls.md`, which is made of it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use ramway_agents::Result;

/// The languages in the order of the tables: the file's name, and what readers call it.
pub const LANGUAGES: [(&str, &str); 9] = [
    ("rust", "Rust"),
    ("c", "C"),
    ("cpp", "C++"),
    ("python", "Python"),
    ("go", "Go"),
    ("javascript", "JavaScript"),
    ("java", "Java"),
    ("kotlin", "Kotlin"),
    ("csharp", "C#"),
];

/// A row of `calls.txt`.
#[derive(Debug, PartialEq, Eq)]
pub struct Call {
    /// As the languages' files name it.
    pub id: String,
    /// What it does, its units and its default.
    pub what: String,
}

/// A heading of `calls.txt` and its rows.
#[derive(Debug, PartialEq, Eq)]
pub struct Section {
    /// The heading.
    pub title: String,
    /// Its rows.
    pub calls: Vec<Call>,
}

/// What a language has for a call.
#[derive(Debug, PartialEq, Eq)]
pub enum Spelling {
    /// One name or several.
    Names(Vec<String>),
    /// None, and why.
    None(String),
}

/// A language's file.
#[derive(Debug, PartialEq, Eq)]
pub struct Spelled {
    /// The ID and the spelling of every call, in the file's order.
    pub calls: Vec<(String, Spelling)>,
    /// Public names that no call covers, and why they are there.
    pub only_here: Vec<(String, String)>,
}

/// Reads `calls.txt`.
///
/// # Errors
/// A line is no row, or an ID is there twice.
pub fn calls(text: &str) -> Result<Vec<Section>> {
    let mut sections: Vec<Section> = Vec::new();
    let mut seen = BTreeSet::new();
    for (line, number) in lines(text) {
        if let Some(title) = line.strip_prefix("## ") {
            sections.push(Section { title: title.trim().to_owned(), calls: Vec::new() });
            continue;
        }
        let section = sections.last_mut().ok_or_else(|| format!("calls.txt:{number}: a row before the first `## `"))?;
        let (id, what) =
            line.split_once(" | ").ok_or_else(|| format!("calls.txt:{number}: not `ID | WHAT IT DOES`: {line}"))?;
        if !seen.insert(id.to_owned()) {
            return Err(format!("calls.txt:{number}: {id} is there twice").into());
        }
        section.calls.push(Call { id: id.trim().to_owned(), what: what.trim().to_owned() });
    }
    Ok(sections)
}

/// Reads a language's file.
///
/// # Errors
/// A line is no row, or a reason is missing.
pub fn spelled(file: &str, text: &str) -> Result<Spelled> {
    let mut all = Spelled { calls: Vec::new(), only_here: Vec::new() };
    let mut only_here = false;
    for (line, number) in lines(text) {
        if let Some(title) = line.strip_prefix("## ") {
            only_here = title.trim() == "Only here";
            continue;
        }
        let wrong = |what: &str| format!("{file}:{number}: {what}: {line}");
        let (name, value) = line.split_once(" = ").ok_or_else(|| wrong("not `NAME = VALUE`"))?;
        let (name, value) = (name.trim().to_owned(), value.trim());
        if only_here {
            if value.is_empty() {
                return Err(wrong("without a reason").into());
            }
            all.only_here.push((name, value.to_owned()));
            continue;
        }
        let spelling = match value.strip_prefix("--") {
            Some(reason) if reason.trim().is_empty() => return Err(wrong("`--` without a reason").into()),
            Some(reason) => Spelling::None(reason.trim().to_owned()),
            None => Spelling::Names(names(value)),
        };
        all.calls.push((name, spelling));
    }
    Ok(all)
}

/// The lines that say something, with their numbers. `# ` begins a remark.
fn lines(text: &str) -> impl Iterator<Item = (&str, usize)> {
    let numbered = text.lines().enumerate().map(|(at, line)| (line.trim(), at + 1));
    numbered.filter(|(line, _)| !line.is_empty() && *line != "#" && !line.starts_with("# "))
}

/// Names between commas, of which one inside brackets is part of a name.
fn names(value: &str) -> Vec<String> {
    let (mut found, mut depth, mut name) = (Vec::new(), 0, String::new());
    for character in value.chars() {
        match character {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                found.push(std::mem::take(&mut name).trim().to_owned());
                continue;
            }
            _ => {}
        }
        name.push(character);
    }
    found.push(name.trim().to_owned());
    found.retain(|name| !name.is_empty());
    found
}

/// Whether a language's file has every call once and in order: the first line that differs.
///
/// # Errors
/// It has not.
pub fn compare(file: &str, sections: &[Section], spelled: &Spelled) -> Result<()> {
    let wanted: Vec<_> =
        sections.iter().flat_map(|section| section.calls.iter().map(|call| call.id.as_str())).collect();
    let there: Vec<_> = spelled.calls.iter().map(|(id, _)| id.as_str()).collect();
    for at in 0..wanted.len().max(there.len()) {
        let (wanted, there) = (wanted.get(at), there.get(at));
        if wanted != there {
            let [wanted, there] = [wanted, there].map(|id| id.copied().unwrap_or("the end"));
            return Err(format!("docs/api/{file}: {there} stands where calls.txt has {wanted}").into());
        }
    }
    for (id, spelling) in &spelled.calls {
        if matches!(spelling, Spelling::Names(names) if names.is_empty()) {
            return Err(format!("docs/api/{file}: {id} has no name").into());
        }
    }
    Ok(())
}

/// Everything that `docs/api/` has, checked.
///
/// # Errors
/// A file is missing or wrong.
pub fn read(docs: &Path) -> Result<(Vec<Section>, Vec<Spelled>)> {
    let text = |file: &str| {
        std::fs::read_to_string(docs.join("api").join(file)).map_err(|cause| format!("docs/api/{file}: {cause}"))
    };
    let sections = calls(&text("calls.txt")?)?;
    let mut all = Vec::new();
    for (language, _) in LANGUAGES {
        let file = format!("{language}.txt");
        let one = spelled(&file, &text(&file)?)?;
        compare(&file, &sections, &one)?;
        all.push(one);
    }
    Ok((sections, all))
}

/// The errors of ABI.md's section 14: name and meaning, in the order of their numbers from 1.
///
/// # Errors
/// The page has no such table, or not every number in it.
pub fn errors(abi: &str) -> Result<Vec<(String, String)>> {
    let (_, table) = abi.split_once("## 14. Error numbers").ok_or("ABI.md has no section 14")?;
    let mut found = Vec::new();
    for line in table.lines().take_while(|line| !line.starts_with("## ")) {
        let cells: Vec<_> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let Some(number) = cells.first().and_then(|cell| cell.parse::<usize>().ok()) else { continue };
        let [_, name, meaning] = cells[..] else { return Err(format!("ABI.md: a row of three cells? {line}").into()) };
        if number != found.len() + 1 {
            return Err(format!("ABI.md: error {number} comes after {}", found.len()).into());
        }
        found.push((name.trim_matches('`').to_owned(), meaning.to_owned()));
    }
    if found.is_empty() { Err("ABI.md: section 14 has no table".into()) } else { Ok(found) }
}

/// A language's spelling of an error, and the file below the repository's root in which it is defined.
#[must_use]
pub fn error_in(language: &str, name: &str) -> (String, &'static str) {
    let mut snake = String::new();
    for (at, letter) in name.char_indices() {
        if at > 0 && letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    let upper = snake.to_ascii_uppercase();
    match language {
        "c" => (format!("RAMWAY_{upper}"), "capi/include/ramway.h"),
        "cpp" => (format!("status::{snake}"), "capi/include/ramway/result.hpp"),
        // Python has an `InterruptedError` of its own.
        "python" if name == "Interrupted" => {
            ("WaitInterruptedError".to_owned(), "bindings/python/python/ramway/_errors.py")
        }
        "python" => (format!("{name}Error"), "bindings/python/python/ramway/_errors.py"),
        "go" => (format!("Err{name}"), "bindings/go/facts.go"),
        "javascript" => (format!("'{name}'"), "bindings/node/lib/facts.ts"),
        "java" | "kotlin" => (format!("ErrorKind.{upper}"), "bindings/java/src/main/java/dev/ramway/ErrorKind.java"),
        "csharp" => (format!("ErrorKind.{name}"), "bindings/csharp/src/Facts/Facts.cs"),
        _ => (format!("ErrorKind::{name}"), "core/src/facts.rs"),
    }
}

const HEAD: &str = "\
# Every call in every language

This page is made of the files in `docs/api/` and says how every language spells each call, option and default. A test of each
language compares its column with what its package really has. `–` with a number: that language has none, and the note below
the table says why.

Positional languages (Rust, C, C++, Go, Java, Kotlin, C#) take what describes a message before its data: `(type_id, tag, data)`,
for tensors `(dtype, shape, tag, data)`. Python and JavaScript take the data first and the rest by name. A time-out that is
absent, `None` or infinite lasts as long as it takes; a negative one is `InvalidArgument`.
";

/// `docs/calls.md`
#[must_use]
pub fn page(sections: &[Section], all: &[Spelled], errors: &[(String, String)]) -> String {
    let mut page = HEAD.to_owned();
    let (mut heads, mut rule) = (String::new(), String::new());
    for (_, name) in LANGUAGES {
        let _ = write!(heads, " {name} |");
        rule.push_str(" --- |");
    }
    let mut at = 0;
    for section in sections {
        let _ = write!(page, "\n## {}\n\n| what |{heads}\n| --- |{rule}\n", section.title);
        // Languages that lack a call for the same reason share a note.
        let mut notes: Vec<(&str, Vec<&str>)> = Vec::new();
        for call in &section.calls {
            let _ = write!(page, "| **{}**: {} |", call.id, cell(&call.what));
            for (language, (_, name)) in all.iter().zip(LANGUAGES) {
                match &language.calls[at].1 {
                    Spelling::Names(names) => {
                        let names: Vec<_> = names.iter().map(|name| format!("`{}`", cell(name))).collect();
                        let _ = write!(page, " {} |", names.join(", "));
                    }
                    Spelling::None(reason) => {
                        let note = notes.iter().position(|(one, _)| one == reason).unwrap_or_else(|| {
                            notes.push((reason, Vec::new()));
                            notes.len() - 1
                        });
                        // A language lacks several calls of a section: it is named once.
                        if !notes[note].1.contains(&name) {
                            notes[note].1.push(name);
                        }
                        let _ = write!(page, " – ({}) |", note + 1);
                    }
                }
            }
            page.push('\n');
            at += 1;
        }
        if !notes.is_empty() {
            page.push('\n');
        }
        for (number, (reason, whom)) in notes.iter().enumerate() {
            let _ = writeln!(page, "{}. {}: {reason}", number + 1, whom.join(", "));
        }
    }
    page.push_str(
        "\n## Errors\n\nThe numbers are those of the format ([ABI.md, section 14](ABI.md#14-error-numbers)).\n\n",
    );
    let _ = writeln!(page, "| number | when |{heads}\n| --- | --- |{rule}");
    for (number, (name, meaning)) in errors.iter().enumerate() {
        let _ = write!(page, "| {} | {} |", number + 1, cell(meaning));
        for (language, _) in LANGUAGES {
            let _ = write!(page, " `{}` |", error_in(language, name).0);
        }
        page.push('\n');
    }
    page.push_str("\n## Only in one language\n\nPublic names that no row above covers.\n");
    for (language, (_, name)) in all.iter().zip(LANGUAGES) {
        if language.only_here.is_empty() {
            continue;
        }
        let _ = write!(page, "\n### {name}\n\n");
        // Names in a row that are there for one reason share a line.
        for (at, (what, why)) in language.only_here.iter().enumerate() {
            let goes_on = at > 0 && same(why, &language.only_here[at - 1].1);
            let what: Vec<_> = names(what).iter().map(|name| format!("`{name}`")).collect();
            let _ = write!(page, "{}{}", if goes_on { ", " } else { "- " }, what.join(", "));
            if language.only_here.get(at + 1).is_none_or(|(_, next)| !same(next, why)) {
                let first = language.only_here[..=at].iter().rev().find(|(_, why)| why != LIKEWISE);
                let _ = writeln!(page, ": {}", first.map_or(why, |(_, why)| why));
            }
        }
    }
    page
}

/// Stands for the reason of the name before.
const LIKEWISE: &str = "likewise";

/// Whether a name is there for the reason of the name before it.
fn same(why: &str, before: &str) -> bool {
    why == before || why == LIKEWISE
}

/// Text inside a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALLS: &str = "# A remark.\n\n## Send\nsend | copies a message in\nsend.try | never waits: `Full`\n\n## Receive\nrecv | the next\n";

    #[test]
    fn calls_stand_below_their_headings() {
        let sections = calls(CALLS).expect("well written");
        assert_eq!(sections.len(), 2);
        assert_eq!((sections[0].title.as_str(), sections[0].calls.len()), ("Send", 2));
        assert_eq!(sections[1].calls[0], Call { id: "recv".into(), what: "the next".into() });
        assert!(calls("## A\nx | 1\nx | 2\n").expect_err("twice").to_string().contains("x is there twice"));
        assert!(calls("x | 1\n").is_err() && calls("## A\nx - 1\n").is_err());
    }

    #[test]
    fn names_are_taken_apart_outside_of_brackets() {
        let all = spelled("x.txt", "send = Sender.send, send(a, b)\nsend.try = -- no call\n## Only here\nX = it is\n")
            .expect("good");
        assert_eq!(all.calls[0].1, Spelling::Names(vec!["Sender.send".into(), "send(a, b)".into()]));
        assert_eq!(all.calls[1].1, Spelling::None("no call".into()));
        assert_eq!(all.only_here, [("X".to_owned(), "it is".to_owned())]);
        assert!(spelled("x.txt", "send = --\n").is_err(), "a hole without a reason");
    }

    #[test]
    fn a_line_that_is_missing_twice_or_elsewhere_is_found() {
        let sections = calls(CALLS).expect("well written");
        let check = |text: &str| {
            compare("x.txt", &sections, &spelled("x.txt", text).expect("lines")).map_err(|e| e.to_string())
        };
        assert_eq!(check("send = a\nsend.try = b\nrecv = c\n"), Ok(()));
        for (text, said) in [
            ("send = a\nrecv = c\n", "recv stands where calls.txt has send.try"),
            ("send = a\nsend.try = b\n", "the end stands where calls.txt has recv"),
            ("send = a\nsend = a\nsend.try = b\nrecv = c\n", "send stands where calls.txt has send.try"),
            ("send = a\nsend.try = b\nrecv = c\nmore = d\n", "more stands where calls.txt has the end"),
        ] {
            let error = check(text).expect_err("different");
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn a_note_names_each_language_once() {
        let sections = calls("## Send\nsend | one\nsend.try | two\n").expect("well written");
        let all: Vec<_> = LANGUAGES
            .iter()
            .map(|(name, _)| {
                let has = if ["go", "csharp"].contains(name) { "-- no such call" } else { "a" };
                spelled("x", &format!("send = {has}\nsend.try = {has}\n")).expect("good")
            })
            .collect();
        let page = page(&sections, &all, &[]);
        assert!(page.contains("\n1. Go, C#: no such call\n"), "{page}");
    }

    #[test]
    fn the_page_has_every_name_and_every_reason() {
        let sections = calls(CALLS).expect("well written");
        let all: Vec<_> = LANGUAGES
            .iter()
            .map(|(name, _)| {
                let last = if *name == "go" { "-- there | is none" } else { "c" };
                spelled("x", &format!("send = {name}_send, a\nsend.try = b\nrecv = {last}\n## Only here\nO, N(a, b) = o\nP = likewise\nQ = q\nR = q\nS = s\n"))
                    .expect("good")
            })
            .collect();
        let page = page(&sections, &all, &[("PeerDead".into(), "it died".into())]);
        assert!(page.contains("| **send**: copies a message in | `rust_send`, `a` | `c_send`, `a` |"), "{page}");
        assert!(page.contains("| `c` | – (1) | `c` |") && page.contains("\n1. Go: there | is none\n"), "{page}");
        assert!(
            page.contains("| 1 | it died | `ErrorKind::PeerDead` | `RAMWAY_PEER_DEAD` | `status::peer_dead` |"),
            "{page}"
        );
        assert!(page.contains("### C#\n\n- `O`, `N(a, b)`, `P`: o\n- `Q`, `R`: q\n- `S`: s\n"), "{page}");
    }
}
