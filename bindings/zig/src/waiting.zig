//! Waiting: poll for a bounded time, then sleep, without missing a wake-up (docs/ABI.md, section 7).

const std = @import("std");
const endpoint = @import("endpoint.zig");
const facts = @import("facts.zig");
const sys = @import("sys.zig");
const Error = facts.Error;

pub const forever = std.math.maxInt(u64);

/// Waits until `side.ready()`, for at most `timeout_ns`, then `TimedOut`. `side` is a Sender or a Receiver.
pub fn until(side: anytype, timeout_ns: u64) Error!void {
    const end = &side.end;
    if (end.corrupt) return error.Corrupt;
    if (try side.ready()) return;
    const deadline = sys.now() +| timeout_ns;
    if (timeout_ns != 0) {
        for (0..facts.spin_max) |_| {
            if (try side.ready()) return;
            std.atomic.spinLoopHint();
        }
    }
    defer endpoint.store(u32, &end.mine.wait, 0);
    while (true) {
        endpoint.store(u32, &end.mine.wait, 1);
        // A peer that does not fence may miss the 1 and be missed: then this side sleeps for a millisecond at most.
        const unfenced = endpoint.load(u32, &end.peer.flags) & facts.role_fence_free != 0;
        if (try decide(side)) return;
        const now = sys.now();
        if (now >= deadline) return error.TimedOut;
        const interval: u64 = if (unfenced) facts.unordered_interval_ns else facts.poll_interval_ns;
        sys.futexWait(&end.mine.wait, 1, @min(interval, deadline - now));
    }
}

/// One check: ready, or how the stream has ended. What was committed before the end goes before it.
fn decide(side: anytype) Error!bool {
    if (try side.ready()) return true;
    side.end.ended(side.end.isCheckDue()) catch |e| {
        // A dead peer is still dead at the next call: it is asked at once.
        side.end.checked_at = 0;
        return if (try side.ready()) true else e;
    };
    return false;
}
