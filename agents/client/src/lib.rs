//! What the runners of the matrix and of the benchmark share: which agents there are and how each is built
//! ([`languages`]), what they say ([`Event`]), and one of them at work ([`Agent`]). `agents/README.md` has the protocol.

mod agent;
mod event;
pub mod languages;
pub mod measured;

pub use agent::{Agent, Heard, Said};
pub use event::Event;
pub use languages::{Language, Result};
