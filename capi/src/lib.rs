//! The C ABI of Ramway. `include/ramway.h` is generated from these files, comments included: they are written for C.
//!
//! Rules of every function, so that its own comment need not repeat them:
//!
//! - A pointer is null, which is `RAMWAY_INVALID_ARGUMENT` where it may not be, or valid for what the function does
//!   with it. A handle is one that its opening call gave and that is not closed yet.
//! - A handle may move between threads and is used by one of them at a time, except where it says otherwise.
//! - Nothing unwinds into the caller.
#![allow(non_camel_case_types, reason = "the names are C's")]
#![allow(clippy::missing_safety_doc, reason = "the rules are those above, and the header's")]

pub mod bus;
mod either;
mod exclusive;
pub mod facts;
pub mod inbox;
pub mod inline;
pub mod options;
pub mod outbox;
pub mod peers;
pub mod publisher;
pub mod receiver;
pub mod region;
pub mod ring;
pub mod rpc;
pub mod segments;
pub mod select;
pub mod sender;
pub mod status;
pub mod subscriber;
pub mod tensor;
pub mod topic;
pub mod version;
