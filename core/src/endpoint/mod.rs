//! What both ends of a ring have in common, whichever role they hold.

pub(crate) mod end;
