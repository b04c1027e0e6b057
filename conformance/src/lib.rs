//! What makes two languages' ports the same format: `conformance/README.md` says how.

pub mod languages;
pub mod vectors;
