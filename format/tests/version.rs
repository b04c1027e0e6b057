//! The version has one home: `scripts/version.sh` finds every other mention, and writes all of them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn run(directory: &Path, program: &str, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).current_dir(directory).output().unwrap()
}

/// A directory that goes with the test.
struct Place(PathBuf);

impl Place {
    fn new() -> Self {
        let place = std::env::temp_dir().join(format!("ramway-version-{}", std::process::id()));
        std::fs::create_dir(&place).unwrap();
        Self(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[track_caller]
fn done(directory: &Path, program: &str, arguments: &[&str]) -> String {
    let output = run(directory, program, arguments);
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}:\n{said}");
    said
}

#[test]
fn what_says_the_version_says_the_same() {
    let said = done(&root(), "sh", &["scripts/version.sh"]);
    assert_eq!(said.trim(), env!("CARGO_PKG_VERSION"));
    done(&root(), "sh", &["scripts/version.sh", "check"]);
}

/// In a copy of what git tracks: another version is written everywhere, and the first one leaves no trace of the other.
#[test]
fn one_command_changes_it_everywhere() {
    let place = Place::new();
    let copy = place.0.as_path();
    // A file that git tracks and that is not there now is left out.
    let script = format!("git ls-files -z | tar --null -T - -cf - 2>/dev/null | tar -xf - -C '{}'", copy.display());
    done(&root(), "sh", &["-c", &script]);
    done(copy, "git", &["init", "--quiet", "."]);
    done(copy, "git", &["add", "--all", "--force"]);
    let set = |version: &str| run(copy, "sh", &["scripts/version.sh", "set", version]);
    // Put together, so that it does not stand in this file.
    let trial = ["98", "7", "6-rc.5"].join(".");
    assert!(set(&trial).status.success());
    done(copy, "sh", &["scripts/version.sh", "check"]);
    let manifest = std::fs::read_to_string(copy.join("cli/Cargo.toml")).unwrap();
    assert!(manifest.contains(&format!("version = \"{trial}\"")), "{manifest}");
    let format = |root: &Path| std::fs::read(root.join("format/facts.toml")).unwrap();
    assert_eq!(format(copy), format(&root()), "the format has a version of its own");

    // One mention that `set` would not find is found.
    std::fs::write(copy.join("new.md"), format!("ramway-{trial}.tar.gz")).unwrap();
    done(copy, "git", &["add", "new.md"]);
    let refused = run(copy, "sh", &["scripts/version.sh", "check"]);
    assert!(!refused.status.success() && String::from_utf8_lossy(&refused.stdout).starts_with("new.md:1:"));
    done(copy, "git", &["rm", "--quiet", "--force", "new.md"]);

    for wrong in ["", "1.2", "v1.2.3", "1.2.3 4"] {
        assert!(!set(wrong).status.success(), "{wrong:?}");
    }
    // The versions that may come next are those of other software too, which is neither taken for ours nor written.
    let number = |text: &str| text.parse::<u32>().unwrap();
    let (major, minor, patch) = (
        number(env!("CARGO_PKG_VERSION_MAJOR")),
        number(env!("CARGO_PKG_VERSION_MINOR")),
        number(env!("CARGO_PKG_VERSION_PATCH")),
    );
    let next_minor = format!("{major}.{}", minor + 1);
    for next in [
        format!("{major}.{minor}.{}", patch + 1),
        format!("{next_minor}.0"),
        format!("{next_minor}.1"),
        format!("{}.0.0", major + 1),
    ] {
        assert!(set(&next).status.success(), "{next}");
        done(copy, "sh", &["scripts/version.sh", "check"]);
        assert!(set(env!("CARGO_PKG_VERSION")).status.success());
        assert_eq!(done(copy, "git", &["diff", "--stat"]), "", "after {next}");
    }
}
