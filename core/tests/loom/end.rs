//! The end of a stream.
