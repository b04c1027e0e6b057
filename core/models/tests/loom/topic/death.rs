//! death
