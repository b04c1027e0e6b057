//! Placeholder until the loops are in.
