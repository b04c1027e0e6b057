//! Measures Ramway against what it is built on and what it replaces.
