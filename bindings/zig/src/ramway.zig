//! The smallest useful port of Ramway: a named ring between two processes of one machine, in Zig without libc.

const facts = @import("facts.zig");
const ring = @import("ring.zig");
const segment = @import("segment.zig");
const waiting = @import("waiting.zig");

pub const Error = facts.Error;
pub const errorNumber = facts.number;
pub const Message = ring.Message;
pub const Options = segment.Options;
pub const Receiver = ring.Receiver;
pub const Sender = ring.Sender;
pub const forever = waiting.forever;
