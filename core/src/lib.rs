//! Shared memory between the processes of one machine.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod error;
pub mod layout;
mod segment;
mod sync;
mod sys;

pub use error::{Error, ErrorKind, Result};
