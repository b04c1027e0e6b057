//! A reader of vectors: what it is told, its events, and how it ends.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use ramway_agents::{Agent, Heard, Language, Said};

use super::files::Result;

/// Something that can be told what an agent is told: a language's, or a library in this process.
pub trait Reader: Sync {
    /// Starts it, with nothing open.
    fn start(&self) -> Result<Box<dyn Session>>;

    /// The largest capacity, in bytes, that it works with; a larger ring it refuses with `Unsupported`.
    fn largest_ring(&self) -> u64 {
        u64::MAX
    }
}

/// A reader at work.
pub trait Session {
    /// Gives it a command.
    fn tell(&mut self, line: &str) -> Result<()>;
    /// Its next event.
    fn hear(&mut self, deadline: Instant) -> Heard;
    /// Whether it has said something or ended already, without waiting. A reader that does so before it is connected has
    /// given up.
    fn any(&mut self) -> bool;
    /// Nothing is open any more, and all it said was heard; the error says what is wrong with it now.
    fn done(&mut self) -> Result<()>;
    /// What it said beside its events, for the report of a failure.
    fn remarks(&mut self) -> String;
}

thread_local! {
    /// Agents that wait for their next command, and their languages. This thread's own: they end with the thread that
    /// started them.
    static IDLE: RefCell<Vec<(String, Served)>> = const { RefCell::new(Vec::new()) };
}

/// An agent, which plays one vector after the other. One that goes wrong ends, and the next vector gets another.
struct Served {
    agent: Agent,
    /// What it said on standard error.
    aside: Arc<Mutex<String>>,
}

struct Playing {
    language: String,
    served: Option<Served>,
}

impl Playing {
    fn served(&mut self) -> &mut Served {
        self.served.as_mut().expect("a session is not used after its end")
    }
}

impl Reader for Language {
    fn start(&self) -> Result<Box<dyn Session>> {
        let idle = IDLE.with_borrow_mut(|idle| {
            let at = idle.iter().position(|(name, _)| *name == self.id)?;
            Some(idle.swap_remove(at).1)
        });
        let start = || -> Result<Served> {
            let aside = Arc::<Mutex<String>>::default();
            let heard = aside.clone();
            let log = move |said: Said<'_>| {
                if let Said::Aside(line) = said {
                    let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
                    heard.push_str(line);
                    heard.push('\n');
                }
            };
            let agent = Agent::start(self.command(), log).map_err(|cause| cause.to_string())?;
            Ok(Served { agent, aside })
        };
        let served = idle.map_or_else(start, Ok)?;
        Ok(Box::new(Playing { language: self.id.clone(), served: Some(served) }))
    }

    fn largest_ring(&self) -> u64 {
        self.largest_ring.unwrap_or(u64::MAX)
    }
}

impl Session for Playing {
    fn tell(&mut self, line: &str) -> Result<()> {
        self.served().agent.tell(line).map_err(|cause| cause.to_string())
    }

    fn hear(&mut self, deadline: Instant) -> Heard {
        self.served().agent.hear(deadline)
    }

    fn any(&mut self) -> bool {
        self.served().agent.any()
    }

    fn done(&mut self) -> Result<()> {
        if let Some(served) = self.served.take() {
            IDLE.with_borrow_mut(|idle| idle.push((self.language.clone(), served)));
        }
        Ok(())
    }

    fn remarks(&mut self) -> String {
        let Some(served) = self.served.take() else { return String::new() };
        let said = served.aside.clone();
        drop(served);
        // What it wrote last may still be on its way.
        std::thread::sleep(std::time::Duration::from_millis(50));
        said.lock().unwrap_or_else(PoisonError::into_inner).trim().to_owned()
    }
}
