//! What the two ends of a ring have in common: attach, close, waking the peer, and the end of a stream (docs/ABI.md,
//! sections 6 and 8).

const std = @import("std");
const facts = @import("facts.zig");
const segment = @import("segment.zig");
const sys = @import("sys.zig");
const Error = facts.Error;

// Every access to a word that both processes use is sequentially consistent. A store of a position is then ordered before
// the load of the peer's wait word that follows it, which section 7 calls the full fence in A. A port that uses the
// membarrier instead says so in its flags; this one leaves MEMBARRIER_CAPABLE and FENCE_FREE 0.

pub fn load(comptime T: type, at: *const T) T {
    return @atomicLoad(T, at, .seq_cst);
}

pub fn store(comptime T: type, at: *T, value: T) void {
    @atomicStore(T, at, value, .seq_cst);
}

/// What one side of a ring says of itself.
pub const RoleLine = extern struct { wait: u32, flags: u32, epoch: u32, close_seen: u32 };

comptime {
    std.debug.assert(@offsetOf(RoleLine, "wait") == facts.off_role_wait and @offsetOf(RoleLine, "flags") == facts.off_role_flags);
    std.debug.assert(@offsetOf(RoleLine, "epoch") == facts.off_role_epoch and @offsetOf(RoleLine, "close_seen") == facts.off_role_close_seen);
}

/// How a peer ended.
const Ending = union(enum) { closed: u32, dead, name_gone };

pub const Endpoint = struct {
    segment: segment.Segment,
    mine: *RoleLine,
    peer: *RoleLine,
    tail: *u64,
    head: *u64,
    /// The producer's epoch whose close was delivered to an earlier consumer, or 0. It ends nothing again.
    delivered: u32 = 0,
    /// The epoch whose close this handle has met, or 0.
    closed_epoch: u32 = 0,
    /// When this handle last asked the system whether the peer lives.
    checked_at: u64,
    /// The peer wrote what no correct peer writes: every further call says so.
    corrupt: bool = false,

    /// The words of a ring whose role is held, and its positions, checked. `announce` makes the holder known.
    pub fn attach(held: segment.Segment) Error!struct { Endpoint, u64, u64 } {
        const block = held.header + facts.block0;
        const producer = word(RoleLine, block + facts.off_producer);
        const consumer = word(RoleLine, block + facts.off_consumer);
        const end: Endpoint = .{
            .segment = held,
            .mine = if (held.role == .producer) producer else consumer,
            .peer = if (held.role == .producer) consumer else producer,
            .tail = word(u64, block + facts.off_tail),
            .head = word(u64, block + facts.off_head),
            .checked_at = sys.now(),
        };
        const tail, const head = .{ load(u64, end.tail), load(u64, end.head) };
        if (!segment.positionsAgree(tail, head, held.capacity, held.alignment)) return error.Corrupt;
        return .{ end, tail, head };
    }

    /// Steps 2 to 5 of an attach. The order counts: a peer that loads the new epoch sees the flags of its holder.
    pub fn announce(self: *Endpoint) void {
        store(u32, &self.mine.wait, 0);
        store(u32, &self.mine.flags, 0);
        store(u32, &self.mine.epoch, @max(load(u32, &self.mine.epoch) +% 1, 1));
        self.wakePeer();
    }

    pub fn wakePeer(self: *Endpoint) void {
        store(u32, &self.peer.wait, 0);
        sys.futexWake(&self.peer.wait);
    }

    /// After a store of a position.
    pub fn wakeIfWaiting(self: *Endpoint) void {
        if (load(u32, &self.peer.wait) != 0) self.wakePeer();
    }

    /// Says that this was all, and releases the role.
    pub fn close(self: *Endpoint) void {
        store(u32, &self.mine.flags, load(u32, &self.mine.flags) | facts.role_closed);
        self.wakePeer();
        self.segment.close();
    }

    /// How the peer has ended, if it has. The system is asked only if `ask_system`.
    fn ending(self: *Endpoint, ask_system: bool) ?Ending {
        const epoch = load(u32, &self.peer.epoch);
        if (self.hasClosed(epoch)) return .{ .closed = epoch };
        if (!ask_system) return null;
        if (self.segment.nameGone()) return .name_gone;
        if (!self.came(epoch) or self.segment.peerAlive()) return null;
        // A close comes before the lock goes: so check for it once more after that was seen gone. The epoch too: the peer
        // may have attached after the first load.
        const later = load(u32, &self.peer.epoch);
        if (self.hasClosed(later)) return .{ .closed = later };
        // And a successor takes the lock before it clears the flag of that close.
        return if (self.segment.peerAlive()) null else .dead;
    }

    fn hasClosed(self: *Endpoint, epoch: u32) bool {
        return self.came(epoch) and load(u32, &self.peer.flags) & facts.role_closed != 0;
    }

    /// Whether there is a peer that can end: on a named ring nobody has to have come yet.
    fn came(self: *Endpoint, epoch: u32) bool {
        return epoch != 0 and epoch != self.delivered;
    }

    /// `ending` as an error, where `ready` has found nothing. What was committed before the end is delivered before the
    /// end is: so the caller checks `ready` again.
    pub fn ended(self: *Endpoint, ask_system: bool) Error!void {
        switch (self.ending(ask_system) orelse return) {
            .closed => |epoch| {
                self.closed_epoch = epoch;
                return error.Closed;
            },
            .name_gone => return error.Closed,
            .dead => return error.PeerDead,
        }
    }

    /// Whether it is time to ask the system again. The clock is the handle's, so that many short waits learn of a death as
    /// one long one does.
    pub fn isCheckDue(self: *Endpoint) bool {
        const now = sys.now();
        if (now - self.checked_at < facts.poll_interval_ns) return false;
        self.checked_at = now;
        return true;
    }

    pub fn fail(self: *Endpoint) Error {
        self.corrupt = true;
        return error.Corrupt;
    }
};

pub fn word(comptime T: type, at: [*]u8) *T {
    return @ptrCast(@alignCast(at));
}
