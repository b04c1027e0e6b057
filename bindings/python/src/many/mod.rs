//! Many at once.
//!
//! | file | what |
//! | --- | --- |
//! | `member.rs` | what can be waited for, and one wait for all of it |
//! | `select.rs` | `ramway.select`, `ramway.Select` and `ramway.Room` |
//! | `sources.rs` | ends that are received from in a fair order, waited for by a thread or by a task |
//! | `merge.rs` | `ramway.merge` |
//! | `inbox.rs` | `ramway.Inbox` |
//! | `outbox.rs` | `ramway.Outbox` |

pub(crate) mod inbox;
pub(crate) mod member;
pub(crate) mod merge;
pub(crate) mod outbox;
pub(crate) mod select;
pub(crate) mod sources;
