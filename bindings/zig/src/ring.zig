//! Sender and receiver of a named ring (docs/ABI.md, sections 4 and 5).

const std = @import("std");
const endpoint = @import("endpoint.zig");
const facts = @import("facts.zig");
const segment = @import("segment.zig");
const waiting = @import("waiting.zig");
const Endpoint = endpoint.Endpoint;
const Error = facts.Error;
const load = endpoint.load;
const store = endpoint.store;
const word = endpoint.word;

fn frameSize(len: u64, alignment: u32) u64 {
    const mask = @as(u64, alignment) - 1;
    return (facts.frame_header + len + mask) & ~mask;
}

/// The sending end; one per ring, in the whole system. For one thread at a time.
pub const Sender = struct {
    end: Endpoint,
    /// The end of the last frame, which is also the published one.
    tail: u64,
    /// The shared `head` as last seen.
    head: u64,
    /// How many bytes a wait is for.
    need: u64 = 0,
    /// The last-tag record that is written next.
    record: usize = 0,

    /// Opens or creates a ring by its name or path, and takes the producer's role.
    pub fn open(name: []const u8, options: segment.Options) Error!Sender {
        var held = try segment.Segment.open(name, .producer, options);
        errdefer held.close();
        const end, const tail, const head = try Endpoint.attach(held);
        var self: Sender = .{ .end = end, .tail = tail, .head = head };
        // Forget what is not the last frame's: a kill may have left a record ahead of tail.
        for (0..2) |i| {
            const record = self.lastTag(i, facts.last_tag_end);
            if (load(u64, record) != tail) store(u64, record, facts.no_position) else self.record = 1 - i;
        }
        self.end.announce();
        return self;
    }

    /// A field of one of the two last-tag records.
    fn lastTag(self: *const Sender, record: usize, field: usize) *u64 {
        return word(u64, self.end.segment.header + facts.block0 + facts.off_last_tags + facts.last_tag_size * record + field);
    }

    /// The longest payload that ever fits, in bytes.
    pub fn maxMessageLen(self: *const Sender) u64 {
        return @min(self.end.segment.capacity - facts.frame_header, facts.message_max);
    }

    /// The tag of the last message that was sent on this ring, by any sender; 0 if it had none, null before the first.
    pub fn tagOfLastMessage(self: *const Sender) ?u64 {
        if (self.tail == self.end.segment.alignment - facts.frame_header) return null;
        for (0..2) |i| {
            if (load(u64, self.lastTag(i, facts.last_tag_end)) == self.tail) return load(u64, self.lastTag(i, facts.last_tag_tag));
        }
        return 0;
    }

    /// Sends a message, and waits for room for at most `timeout_ns`: then `TimedOut`, or `Full` with a time-out of 0. `Closed`
    /// or `PeerDead` if there is no room and nobody left to make any.
    pub fn send(self: *Sender, type_id: u32, tag: u64, payload: []const u8, timeout_ns: u64) Error!void {
        if (type_id >= facts.type_id_reserved) return error.InvalidArgument;
        if (payload.len > self.maxMessageLen()) return error.TooLarge;
        const size = frameSize(payload.len, self.end.segment.alignment);
        self.need = size;
        waiting.until(self, timeout_ns) catch |e| return if (e == error.TimedOut and timeout_ns == 0) error.Full else e;
        const at = self.end.segment.data + (self.tail & (self.end.segment.capacity - 1));
        // Plain stores: nobody reads them before tail is published.
        word(u32, at + facts.frame_len).* = @intCast(payload.len);
        word(u32, at + facts.frame_type_id).* = type_id;
        word(u64, at + facts.frame_tag).* = tag;
        @memcpy(at[facts.frame_header..], payload);
        self.tail +%= size;
        if (tag != 0) {
            // A kill between these stores leaves the other record whole, which belongs to the tail that is published.
            store(u64, self.lastTag(self.record, facts.last_tag_end), self.tail);
            store(u64, self.lastTag(self.record, facts.last_tag_tag), tag);
            self.record = 1 - self.record;
        }
        store(u64, self.end.tail, self.tail);
        self.end.wakeIfWaiting();
    }

    /// Whether `need` bytes are free. The shared head is loaded once and validated: it may only move forward, up to what
    /// was published, in steps of the alignment.
    pub fn ready(self: *Sender) Error!bool {
        const head = load(u64, self.end.head);
        const moved = head -% self.head;
        if (moved > self.tail -% self.head or moved % self.end.segment.alignment != 0) return self.end.fail();
        self.head = head;
        return self.need <= self.end.segment.capacity - (self.tail -% head);
    }

    /// Tells the receiver that this was all.
    pub fn close(self: *Sender) void {
        self.end.close();
    }
};

pub const Message = struct {
    type_id: u32,
    tag: u64,
    /// In shared memory, good until `release`. A peer that is not trusted may rewrite it meanwhile.
    payload: []const u8,
};

/// The receiving end; one per ring, in the whole system. For one thread at a time.
pub const Receiver = struct {
    end: Endpoint,
    /// Where the next frame begins; from `released`, which is published, to here is out.
    head: u64,
    released: u64,
    /// The shared `tail` as last seen.
    tail: u64,

    /// Opens or creates a ring by its name or path, and takes the consumer's role.
    pub fn open(name: []const u8, options: segment.Options) Error!Receiver {
        var held = try segment.Segment.open(name, .consumer, options);
        errdefer held.close();
        const end, const tail, const head = try Endpoint.attach(held);
        var self: Receiver = .{ .end = end, .head = head, .released = head, .tail = tail };
        const seen = load(u32, &end.mine.close_seen);
        const epoch = load(u32, &end.peer.epoch);
        if (load(u32, &end.peer.flags) & facts.role_closed != 0 and seen == epoch) self.end.delivered = epoch;
        self.end.announce();
        return self;
    }

    /// The next message, which is out until `release`; waits for it for at most `timeout_ns`, then `TimedOut`, or `Empty` with
    /// a time-out of 0. After the last one `Closed` if the sender closed, `PeerDead` if it died.
    pub fn recv(self: *Receiver, timeout_ns: u64) Error!Message {
        if (self.head != self.released) return error.Busy;
        waiting.until(self, timeout_ns) catch |e| {
            // The close is delivered: a consumer that comes later waits for a successor.
            if (e == error.Closed and self.end.closed_epoch != 0) store(u32, &self.end.mine.close_seen, self.end.closed_epoch);
            return if (e == error.TimedOut and timeout_ns == 0) error.Empty else e;
        };
        const at = self.end.segment.data + (self.head & (self.end.segment.capacity - 1));
        // Each number is loaded once: a peer that rewrites it cannot pass the check with one value and be used with another.
        const len = load(u32, word(u32, at + facts.frame_len));
        const size = frameSize(len, self.end.segment.alignment);
        if (len > facts.message_max or size > self.tail -% self.head) return self.end.fail();
        self.head +%= size;
        return .{
            .type_id = load(u32, word(u32, at + facts.frame_type_id)),
            .tag = load(u64, word(u64, at + facts.frame_tag)),
            .payload = at[facts.frame_header..][0..len],
        };
    }

    /// Gives the message back, and wakes the sender if it waits.
    pub fn release(self: *Receiver) void {
        if (self.end.corrupt) return;
        self.released = self.head;
        store(u64, self.end.head, self.head);
        self.end.wakeIfWaiting();
    }

    /// Whether a frame is there. The shared tail is loaded once and validated: it may only move forward, up to a capacity
    /// beyond what was released, in steps of the alignment.
    pub fn ready(self: *Receiver) Error!bool {
        if (self.head != self.tail) return true;
        const tail = load(u64, self.end.tail);
        const moved = tail -% self.tail;
        const limit = self.end.segment.capacity - (self.tail -% self.released);
        if (moved > limit or moved % self.end.segment.alignment != 0) return self.end.fail();
        self.tail = tail;
        return moved != 0;
    }

    /// Tells the sender that nobody reads any more. What is not released stays for the next receiver.
    pub fn close(self: *Receiver) void {
        self.end.close();
    }
};
