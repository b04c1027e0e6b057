//! sleep
