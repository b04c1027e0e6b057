//! The languages that there are: what `agents/*/language.json` says, built and ready to be started.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

/// What went wrong, in words.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// One language's agent.
#[derive(Clone, Debug)]
pub struct Language {
    /// Its directory below `agents/`, for flags and names of files.
    pub id: String,
    /// As people write it.
    pub name: String,
    /// Its place in tables.
    pub order: u32,
    /// The commands that it needs and that are not on the PATH; such a language is neither built nor started.
    pub missing: Option<String>,
    /// The largest capacity that its Ramway works with, in bytes, where that is not any.
    pub largest_ring: Option<u64>,
    /// The languages, by directory, that it meets where the work is spread; all of them where nothing is said.
    pub partners: Option<Vec<String>>,
    /// Whether its Ramway has topics.
    pub topics: bool,
    /// Whether its Ramway has RPC.
    pub rpc: bool,
    /// Whether it has a second client of RPC, for tasks, which is opened with `kind=async`.
    pub async_client: bool,
    /// Whether it takes longer to start than a peer waits for it, under an emulator for one: it is to answer before a peer starts.
    pub starts_slowly: bool,
    /// Whether it writes messages in place. Where memory cannot be mapped a second time, as under an emulator, some languages do not.
    pub reserves: bool,
    /// How many times as many messages as are measured it plays before, for a compiler that learns by running them.
    pub warm_up: u64,
    directory: PathBuf,
    checks: Vec<Vec<String>>,
    build: Vec<Vec<String>>,
    run: Vec<String>,
    speed: Vec<String>,
}

/// `language.json`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    name: String,
    order: u32,
    needs: Vec<String>,
    #[serde(default)]
    checks: Vec<Vec<String>>,
    #[serde(default)]
    build: Vec<Vec<String>>,
    run: Vec<String>,
    speed: Option<Vec<String>>,
    largest_ring: Option<u64>,
    partners: Option<Vec<String>>,
    #[serde(default)]
    topics: bool,
    #[serde(default)]
    rpc: bool,
    #[serde(default)]
    async_client: bool,
    #[serde(default)]
    starts_slowly: bool,
    #[serde(default = "usually")]
    reserves: bool,
    #[serde(default)]
    warm_up: u64,
}

/// What most languages can.
fn usually() -> bool {
    true
}

/// The root of the repository that this is called in, else of the one that it was built from.
pub fn root() -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    let built_from = Path::new(env!("CARGO_MANIFEST_DIR"));
    let found = here.ancestors().find(|folder| folder.join("agents/rust").is_dir());
    found.unwrap_or(built_from.ancestors().nth(2).unwrap_or(built_from)).to_owned()
}

/// Cargo's target directory.
pub fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR").filter(|value| !value.is_empty()) {
        // As cargo takes it: from where it is called.
        Some(path) => std::path::absolute(&path).unwrap_or_else(|_| path.into()),
        None => root().join("target"),
    }
}

/// Every language, or those of `only` (by directory or by name), in the order of the tables. What can be built is built.
///
/// # Errors
/// A name in `only` that no language has, a `language.json` that cannot be understood, a build that failed.
pub fn all(only: &[String]) -> Result<Vec<Language>> {
    let found = find()?;
    for wanted in only {
        if !found.iter().any(|language| language.is(wanted)) {
            let names: Vec<_> = found.iter().map(|language| language.id.as_str()).collect();
            return Err(format!("no language is called '{wanted}': there are {}", names.join(", ")).into());
        }
    }
    let chosen = |language: &Language| only.is_empty() || only.iter().any(|wanted| language.is(wanted));
    let languages: Vec<_> = found.into_iter().filter(chosen).map(Language::checked).collect();
    languages.iter().try_for_each(Language::build)?;
    Ok(languages)
}

/// How the agents of these languages are started to be measured, by directory, as a JSON object; they are built.
///
/// # Errors
/// As for [`all`]; or what a language needs is missing.
pub fn commands(only: &[String]) -> Result<String> {
    let mut commands = std::collections::BTreeMap::new();
    for language in all(only)? {
        if let Some(missing) = &language.missing {
            return Err(format!("{}: missing {missing}", language.name).into());
        }
        let words = language.expand(&language.speed);
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        commands.insert(language.id, words);
    }
    Ok(serde_json::to_string(&commands)?)
}

/// Every language as it is described, not built: those of `agents/`, and of a folder that `RAMWAY_AGENTS` names, from the root.
fn find() -> Result<Vec<Language>> {
    let more = std::env::var_os("RAMWAY_AGENTS").filter(|folder| !folder.is_empty());
    let folders = [Some("agents".into()), more].into_iter().flatten().map(|folder| root().join(folder));
    let mut found = Vec::new();
    for folder in folders {
        found.extend(described(&folder).map_err(|cause| format!("{}: {cause}", folder.display()))?);
    }
    found.sort_by(|a: &Language, b| (a.order, &a.id).cmp(&(b.order, &b.id)));
    Ok(found)
}

/// The languages that have a directory in this folder.
fn described(folder: &Path) -> Result<Vec<Language>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let directory = entry?.path();
        let file = directory.join("language.json");
        if !file.is_file() {
            continue;
        }
        let text = std::fs::read_to_string(&file)?;
        let id = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
        found.push(Language::new(id, directory, &text).map_err(|cause| format!("{}: {cause}", file.display()))?);
    }
    Ok(found)
}

impl Language {
    /// The one of this directory, as its `language.json` describes it.
    ///
    /// # Errors
    /// The text cannot be understood.
    pub fn new(id: String, directory: PathBuf, text: &str) -> Result<Self> {
        let Description {
            name,
            order,
            needs,
            checks,
            build,
            run,
            speed,
            largest_ring,
            partners,
            topics,
            rpc,
            async_client,
            starts_slowly,
            reserves,
            warm_up,
        } = serde_json::from_str(text)?;
        let speed = speed.unwrap_or_else(|| run.clone());
        if run.is_empty() || speed.is_empty() || checks.iter().any(Vec::is_empty) {
            return Err("`run`, `speed` or one of `checks` is empty".into());
        }
        let lacking: Vec<_> = needs.into_iter().filter(|command| !on_path(command)).collect();
        let missing = (!lacking.is_empty()).then(|| lacking.join(", "));
        Ok(Self {
            id,
            name,
            order,
            missing,
            largest_ring,
            partners,
            topics,
            rpc,
            async_client,
            starts_slowly,
            reserves,
            warm_up,
            directory,
            checks,
            build,
            run,
            speed,
        })
    }

    /// Finds out what no name on the PATH tells, by its own commands: the last that one says is what is missing.
    fn checked(mut self) -> Self {
        if self.missing.is_none() {
            self.missing = self.checks.iter().find_map(|check| {
                let words = self.expand(check);
                let output = Command::new(&words[0]).args(&words[1..]).stdin(Stdio::null()).output();
                let said = match output {
                    Ok(output) if output.status.success() => return None,
                    Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
                    Err(cause) => cause.to_string(),
                };
                let last = said.lines().rfind(|line| !line.trim().is_empty());
                Some(last.unwrap_or("a check failed").to_owned())
            });
        }
        self
    }

    /// Whether it meets the other one where the work is spread.
    pub fn meets(&self, other: &Self) -> bool {
        let chooses = |one: &Self, another: &Self| {
            one.id == another.id || one.partners.as_ref().is_none_or(|partners| partners.contains(&another.id))
        };
        chooses(self, other) && chooses(other, self)
    }

    /// Whether this name, or this directory, is its own.
    pub fn is(&self, wanted: &str) -> bool {
        self.id.eq_ignore_ascii_case(wanted) || self.name.eq_ignore_ascii_case(wanted)
    }

    /// What starts the agent.
    pub fn command(&self) -> Command {
        self.command_of(&self.run)
    }

    /// The same, as it is started to be measured.
    pub fn speed_command(&self) -> Command {
        self.command_of(&self.speed)
    }

    fn command_of(&self, words: &[String]) -> Command {
        let words = self.expand(words);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        command
    }

    fn expand(&self, words: &[String]) -> Vec<OsString> {
        let out = target().join("conformance").join(&self.id);
        let places = [("{out}", out), ("{root}", root()), ("{target}", target()), ("{dir}", self.directory.clone())];
        let expand = |word: &String| {
            let text =
                places.iter().fold(word.clone(), |word, (mark, path)| word.replace(mark, &path.to_string_lossy()));
            OsString::from(text)
        };
        words.iter().map(expand).collect()
    }

    fn build(&self) -> Result<()> {
        if self.missing.is_some() {
            return Ok(());
        }
        std::fs::create_dir_all(target().join("conformance").join(&self.id))?;
        for step in &self.build {
            let words = self.expand(step);
            let (program, rest) = words.split_first().ok_or_else(|| format!("{}: an empty build step", self.name))?;
            let output = Command::new(program)
                .args(rest)
                .current_dir(&self.directory)
                .env("CARGO_TARGET_DIR", target())
                .stdin(Stdio::null())
                .output()
                .map_err(|cause| format!("{}: {}: {cause}", self.name, program.display()))?;
            if !output.status.success() {
                let line: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
                let said = [output.stdout, output.stderr].concat();
                let said = String::from_utf8_lossy(&said).into_owned();
                return Err(format!("{}: `{}` failed:\n{said}", self.name, line.join(" ")).into());
            }
        }
        Ok(())
    }
}

fn on_path(command: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(command).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn language(text: &str) -> Result<Language> {
        Language::new("x".to_owned(), PathBuf::from("/somewhere"), text)
    }

    #[test]
    fn words_are_filled_in() {
        let text = r#"{ "name": "X", "order": 1, "needs": ["sh"], "run": ["{out}/x", "{root}", "-I{dir}"] }"#;
        let x = language(text).expect("well written");
        let words = x.expand(&x.run);
        assert_eq!(words[0], target().join("conformance/x/x").into_os_string());
        assert_eq!((words[1].as_os_str(), words[2].to_str()), (root().as_os_str(), Some("-I/somewhere")));
        assert_eq!(x.missing, None);
    }

    #[test]
    fn what_is_not_on_the_path_is_missing() {
        let text = r#"{ "name": "X", "order": 1, "needs": ["sh", "no-such-compiler"], "run": ["x"] }"#;
        assert_eq!(language(text).expect("well written").missing.as_deref(), Some("no-such-compiler"));
    }

    #[test]
    fn a_check_says_what_is_missing() {
        let with = |check: &str| {
            let text = format!(r#"{{ "name": "X", "order": 1, "needs": [], "checks": [{check}], "run": ["x"] }}"#);
            language(&text).expect("well written").checked().missing
        };
        assert_eq!(with(r#"["true"]"#), None);
        assert_eq!(
            with(r#"["true"], ["sh", "-c", "echo looking; echo no X 9 >&2; exit 1"]"#).as_deref(),
            Some("no X 9")
        );
        assert_eq!(with(r#"["false"]"#).as_deref(), Some("a check failed"));
        assert!(with(r#"["{out}/nothing"]"#).is_some());
    }

    #[test]
    fn measured_is_what_runs_unless_it_says_otherwise() {
        let plain = language(r#"{ "name": "X", "order": 1, "needs": [], "run": ["x", "-q"] }"#).expect("well written");
        let of = |command: Command| command.get_program().to_owned();
        assert_eq!(of(plain.speed_command()), of(plain.command()));
        let text = r#"{ "name": "X", "order": 1, "needs": [], "run": ["x"], "speed": ["y"] }"#;
        let other = language(text).expect("well written");
        assert_eq!((of(other.command()), of(other.speed_command())), ("x".into(), "y".into()));
    }

    #[test]
    fn a_language_may_choose_whom_it_meets() {
        let named = |id: &str, more: &str| {
            let text = format!(r#"{{ "name": "{id}", "order": 1, "needs": [], "run": ["x"]{more} }}"#);
            Language::new(id.to_owned(), PathBuf::from("/somewhere"), &text).expect("well written")
        };
        let (rust, java, kotlin) = (named("rust", ""), named("java", ""), named("kotlin", r#", "partners": ["java"]"#));
        assert!(kotlin.meets(&java) && java.meets(&kotlin) && kotlin.meets(&kotlin) && rust.meets(&java));
        assert!(!kotlin.meets(&rust) && !rust.meets(&kotlin));
    }

    #[test]
    fn mistakes_are_told() {
        assert!(language(r#"{ "name": "X", "order": 1, "needs": [], "run": [] }"#).is_err());
        assert!(language(r#"{ "name": "X", "order": 1, "needs": [], "run": ["x"], "rum": 1 }"#).is_err());
        assert!(language(r#"{ "name": "X", "order": 1, "needs": [], "run": ["x"], "checks": [[]] }"#).is_err());
        let error = all(&["klingon".to_owned()]).expect_err("not a language");
        assert!(error.to_string().contains("rust"), "{error}");
    }
}
