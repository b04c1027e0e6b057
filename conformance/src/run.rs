//! Agents in a place of their own: started, listened to, told things, killed, and a log of what they said. One that has closed what
//! it had open can go on in another place.

use std::cell::RefCell;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ramway_agents::{Agent, Event, Heard, Language, Result, Said};

use crate::folder::Folder;

/// A directory of its own in memory for named segments, what happened in it, and until when.
pub struct Scene {
    directory: Folder,
    began: Instant,
    deadline: Instant,
    log: Arc<Mutex<Vec<String>>>,
}

/// How much of a log is kept at its beginning and at its end.
const LOG_LINES: usize = 40;
/// How much of a line.
const LINE: usize = 240;

impl Scene {
    /// An empty directory; whatever is done here must be over after `limit`.
    ///
    /// # Errors
    /// The directory cannot be made.
    pub fn new(limit: Duration) -> Result<Self> {
        let began = Instant::now();
        Ok(Self { directory: Folder::new()?, began, deadline: began + limit, log: Arc::default() })
    }

    /// Where its names stand.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// A place in it, for an agent that may know another one.
    pub fn path(&self, name: &str) -> String {
        self.directory().join(name).display().to_string()
    }

    /// What is left of its time.
    pub fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Starts a language's agent, as `role` in logs.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(&self, language: &Language, role: &str) -> Result<Program> {
        self.start_as(language, language.command(), role)
    }

    /// The same, by a command of its own.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start_as(&self, language: &Language, mut command: Command, role: &str) -> Result<Program> {
        let label = format!("{} {role}", language.name);
        command.env("RAMWAY_DIR", self.directory());
        let page = Page::default();
        page.turn(Some(self.entries(&label)));
        let written = page.clone();
        let said = move |said: Said<'_>| match said {
            Said::Told(line) => written.add(&format!("< {line}")),
            Said::Event(line) => written.add(line),
            Said::Aside(line) => written.add(&format!("stderr: {line}")),
        };
        let agent = Agent::start(command, said).map_err(|cause| format!("{label}: {cause}"))?;
        let mut program =
            Program { agent, label, deadline: self.deadline, page, language: language.id.clone(), stays: false };
        if language.starts_slowly {
            program.ask("about", "about")?;
        }
        Ok(program)
    }

    /// An agent of this language that was [given back](Program::give_back) to this thread, or a new one. It knows no directory but that
    /// of its first scene: it is to be told paths.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn take(&self, language: &Language, role: &str) -> Result<Program> {
        let idle = IDLE.with_borrow_mut(|idle| {
            let at = idle.iter().position(|program| program.language == language.id)?;
            Some(idle.swap_remove(at))
        });
        let Some(mut program) = idle else { return Ok(self.start(language, role)?.staying()) };
        program.label = format!("{} {role}", language.name);
        program.deadline = self.deadline;
        program.page.turn(Some(self.entries(&program.label)));
        Ok(program)
    }

    /// [Started](Self::start) anew, or [taken](Self::take).
    ///
    /// # Errors
    /// It cannot be started.
    pub fn agent(&self, language: &Language, role: &str, fresh: bool) -> Result<Program> {
        if fresh { self.start(language, role) } else { self.take(language, role) }
    }

    /// A successor, which is another process than the one before; given back afterwards unless agents are `fresh` here.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn successor(&self, language: &Language, role: &str, fresh: bool) -> Result<Program> {
        let program = self.start(language, role)?;
        Ok(if fresh { program } else { program.staying() })
    }

    /// What an [agent](Self::agent) calls something here: a name, or where its directory may be another one a path.
    pub fn name(&self, name: &str, fresh: bool) -> String {
        if fresh { name.to_owned() } else { self.path(name) }
    }

    fn entries(&self, label: &str) -> Entries {
        Entries { log: self.log.clone(), began: self.began, label: label.to_owned() }
    }

    /// Adds a line of the runner's own to the log.
    pub fn note(&self, label: &str, line: &str) {
        add(&self.log, self.began, label, line);
    }

    /// What all programs said, in the order in which it was read; the middle of a long log is left out.
    pub fn log(&self) -> Vec<String> {
        let log = lock(&self.log);
        if log.len() <= 2 * LOG_LINES {
            return log.clone();
        }
        let mut kept = log[..LOG_LINES].to_vec();
        kept.push(format!("... {} lines", log.len() - 2 * LOG_LINES));
        kept.extend_from_slice(&log[log.len() - LOG_LINES..]);
        kept
    }

    /// The names that are left in the directory.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn names(&self) -> Result<Vec<PathBuf>> {
        std::fs::read_dir(self.directory())?.map(|entry| Ok(entry?.file_name().into())).collect()
    }
}

fn lock(log: &Mutex<Vec<String>>) -> MutexGuard<'_, Vec<String>> {
    // A panic elsewhere leaves the list whole.
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

fn add(log: &Mutex<Vec<String>>, began: Instant, label: &str, line: &str) {
    // The bytes of a tensor say little.
    let shown = line.char_indices().nth(LINE).map_or(line, |(end, _)| &line[..end]);
    let entry = format!("{:8.3} {label}: {shown}", began.elapsed().as_secs_f64());
    let mut log = lock(log);
    // Of a row of `at` lines only the last says anything; two programs may take turns.
    if line.starts_with("at ") {
        let same = format!(" {label}: at ");
        if let Some(last) = log.iter_mut().rev().take(2).find(|last| last.contains(&same)) {
            *last = entry;
            return;
        }
    }
    log.push(entry);
}

/// Where what an agent says is written.
struct Entries {
    log: Arc<Mutex<Vec<String>>>,
    began: Instant,
    label: String,
}

/// The log that an agent writes at present; none between two scenes.
#[derive(Clone, Default)]
struct Page(Arc<Mutex<Option<Entries>>>);

impl Page {
    fn turn(&self, entries: Option<Entries>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = entries;
    }

    fn add(&self, line: &str) {
        if let Some(Entries { log, began, label }) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            add(log, *began, label, line);
        }
    }
}

thread_local! {
    /// Agents with nothing open. This thread's own: they end with the thread that started them.
    static IDLE: RefCell<Vec<Program>> = const { RefCell::new(Vec::new()) };
}

/// How many idle agents of a language a thread has at most.
const IDLE_MOST: usize = 3;

/// Ends this thread's idle agents but for those of these languages.
pub fn keep(languages: [&Language; 2]) {
    end_idle(|one| languages.iter().all(|language| language.id != one.language));
}

/// Ends this thread's idle agents but for one of each language.
pub fn thin() {
    let mut seen = HashSet::new();
    end_idle(|one| !seen.insert(one.language.clone()));
}

fn end_idle(mut which: impl FnMut(&Program) -> bool) {
    let ended: Vec<Program> = IDLE.with_borrow_mut(|idle| idle.extract_if(.., |one| which(one)).collect());
    // Not while they are borrowed: each is killed and waited for.
    drop(ended);
}

/// A running agent. Killed and waited for when dropped.
pub struct Program {
    agent: Agent,
    label: String,
    deadline: Instant,
    page: Page,
    language: String,
    stays: bool,
}

impl Program {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.agent.pid()
    }

    fn named<T>(&self, outcome: Result<T>) -> Result<T> {
        outcome.map_err(|cause| format!("{}: {cause}", self.label).into())
    }

    /// The next line, whatever it is; `None` when there will be no more.
    ///
    /// # Errors
    /// None came in time.
    pub fn event(&mut self) -> Result<Option<Event>> {
        match self.agent.hear(self.deadline) {
            Heard::Event(event) => Ok(Some(event)),
            Heard::Ended => Ok(None),
            Heard::Silence => self.named(Err("said nothing more in time".into())),
        }
    }

    /// The next event of this word; `at` lines before it are passed over.
    ///
    /// # Errors
    /// Another event comes first, or the agent ends, or the time is over.
    pub fn expect(&mut self, word: &str) -> Result<Event> {
        let outcome = self.agent.expect(word, self.deadline);
        self.named(outcome)
    }

    /// Whether it has said something or ended already, without waiting.
    pub fn any(&mut self) -> bool {
        self.agent.any()
    }

    /// Stops it (SIGSTOP), and waits until all of it stands still.
    ///
    /// # Errors
    /// It has ended, or does not stop in time.
    pub fn stop(&mut self) -> Result<()> {
        let outcome = self.agent.stop(self.deadline);
        self.named(outcome)
    }

    /// Lets it go on after [`stop`](Self::stop).
    ///
    /// # Errors
    /// It has ended.
    pub fn go_on(&mut self) -> Result<()> {
        let outcome = self.agent.go_on();
        self.named(outcome)
    }

    /// Gives it a command.
    ///
    /// # Errors
    /// It does not read any more.
    pub fn tell(&mut self, command: &str) -> Result<()> {
        let outcome = self.agent.tell(command);
        self.named(outcome)
    }

    /// Gives it a command that is answered by one event of this word.
    ///
    /// # Errors
    /// As for [`tell`](Self::tell) and [`expect`](Self::expect).
    pub fn ask(&mut self, command: &str, word: &str) -> Result<Event> {
        self.tell(command)?;
        self.expect(word)
    }

    /// The same, to be [given back](Self::give_back) when it has finished.
    #[must_use]
    pub fn staying(mut self) -> Self {
        self.stays = true;
        self
    }

    /// Has it close what is open, and waits for its orderly end; one that [stays](Self::staying) is given back.
    ///
    /// # Errors
    /// It ends otherwise, or not in time.
    pub fn finish(self) -> Result<()> {
        if self.stays { self.give_back() } else { self.end() }
    }

    fn end(mut self) -> Result<()> {
        let outcome = self.agent.finish(self.deadline);
        self.named(outcome)
    }

    /// Has it close what is open, and leaves it to another scene of this thread.
    ///
    /// # Errors
    /// It ends, or does not close in time.
    pub fn give_back(mut self) -> Result<()> {
        let idle = IDLE.with_borrow(|idle| idle.iter().filter(|program| program.language == self.language).count());
        if idle >= IDLE_MOST {
            return self.end();
        }
        self.ask("close", "closed")?;
        self.page.turn(None);
        IDLE.with_borrow_mut(|idle| idle.push(self));
        Ok(())
    }

    /// Kills it; gives what it had said by then, and when it was gone.
    ///
    /// # Errors
    /// It had ended by itself before.
    pub fn kill(mut self) -> Result<(Vec<Event>, Instant)> {
        let outcome = self.agent.kill(self.deadline);
        self.named(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn language(id: &str) -> Language {
        let run = "while read line; do echo closed; done";
        let text = format!(r#"{{ "name": "{id}", "order": 1, "needs": [], "run": ["sh", "-c", "{run}"] }}"#);
        Language::new(id.to_owned(), PathBuf::from("/"), &text).expect("well written")
    }

    #[test]
    fn an_agent_goes_on_in_another_scene() {
        let [one, other] = ["one", "other"].map(language);
        let scene = || Scene::new(Duration::from_secs(60)).expect("a directory");
        let first = scene();
        let program = first.take(&one, "server").expect("a shell");
        let pid = program.pid();
        program.give_back().expect("it closes");
        let said = first.log().len();
        let second = scene();
        let mut program = second.take(&one, "client").expect("the same shell");
        assert_eq!(program.pid(), pid);
        program.ask("close", "closed").expect("it answers");
        assert_eq!(first.log().len(), said, "what it says now is the second scene's");
        assert!(second.log().iter().all(|line| line.contains("one client: ")) && second.log().len() == 2);
        program.give_back().expect("it closes");
        keep([&other, &other]);
        assert_ne!(scene().take(&one, "server").expect("a shell").pid(), pid, "it was ended");
    }

    #[test]
    fn a_long_log_keeps_its_ends() {
        let scene = Scene::new(Duration::from_secs(1)).expect("a directory");
        for i in 0..1000 {
            scene.note("x", &i.to_string());
        }
        let log = scene.log();
        assert_eq!(log.len(), 2 * LOG_LINES + 1);
        assert!(log[0].ends_with("x: 0") && log[2 * LOG_LINES].ends_with("x: 999"), "{log:?}");
        assert_eq!(log[LOG_LINES], "... 920 lines");
        (0..9).for_each(|i| scene.note(["x", "y"][i % 2], &format!("at seq={i}")));
        let log = scene.log();
        assert!(
            log[2 * LOG_LINES - 1].ends_with("y: at seq=7") && log[2 * LOG_LINES].ends_with("x: at seq=8")
                || log[2 * LOG_LINES].ends_with("y: at seq=7"),
            "{log:?}"
        );
    }
}
