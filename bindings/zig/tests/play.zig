//! One end of a ring, told by `run.py` what to do: a command a line on standard input, an answer a line.
//!
//!     play producer|consumer PATH open|create CAPACITY ALIGN

const std = @import("std");
const ramway = @import("ramway");
const linux = std.os.linux;

pub fn main(init: std.process.Init.Minimal) !u8 {
    const args = init.args.vector;
    if (args.len != 6) return 2;
    const options: ramway.Options = .{
        .directory = init.environ.getPosix("RAMWAY_DIR"),
        .create = std.mem.eql(u8, std.mem.span(args[3]), "create"),
        .capacity = try std.fmt.parseInt(u64, std.mem.span(args[4]), 10),
        .alignment = try std.fmt.parseInt(u32, std.mem.span(args[5]), 10),
    };
    const path = std.mem.span(args[2]);
    if (std.mem.eql(u8, std.mem.span(args[1]), "producer")) {
        var tx = ramway.Sender.open(path, options) catch |e| return refused(e);
        try attached(&tx.end);
        while (try nextLine()) |line| try sendAs(&tx, line);
        tx.close();
    } else {
        var rx = ramway.Receiver.open(path, options) catch |e| return refused(e);
        try attached(&rx.end);
        while (try nextLine()) |line| try receiveAs(&rx, line);
        rx.close();
    }
    try say("closed", .{});
    return 0;
}

fn refused(e: ramway.Error) !u8 {
    try say("error {t} {d}", .{ e, ramway.errorNumber(e) });
    return 0;
}

fn attached(end: anytype) !void {
    const longest = @min(end.segment.capacity - 16, (1 << 31) - 17);
    try say("attached epoch={d} peer_epoch={d} capacity={d} max={d}", .{ end.mine.epoch, end.peer.epoch, end.segment.capacity, longest });
}

fn sendAs(tx: *ramway.Sender, line: []const u8) !void {
    var words = std.mem.tokenizeScalar(u8, line, ' ');
    const what = words.next().?;
    if (std.mem.eql(u8, what, "last")) {
        if (tx.tagOfLastMessage()) |tag| try say("last {d}", .{tag}) else try say("last none", .{});
        return;
    }
    // put TYPE TAG LEN TIMEOUT_NS COUNT: byte i of message s is s + i, modulo 256.
    const type_id, const tag = .{ try number(u32, words.next()), try number(u64, words.next()) };
    const len, const timeout = .{ try number(usize, words.next()), try number(u64, words.next()) };
    const count = try number(u64, words.next());
    const payload = payloads[0..len];
    for (0..count) |s| {
        for (payload, 0..) |*byte, i| byte.* = @truncate(s + i);
        tx.send(type_id, tag, payload, timeout) catch |e| {
            try say("error {t}", .{e});
            return;
        };
    }
    try say("sent", .{});
}

var payloads: [1 << 20]u8 = undefined;

/// recv TIMEOUT_NS COUNT: says each message, and how it ended if there were fewer.
fn receiveAs(rx: *ramway.Receiver, line: []const u8) !void {
    var words = std.mem.tokenizeScalar(u8, line, ' ');
    const what, const timeout = .{ words.next().?, try number(u64, words.next()) };
    const hold = std.mem.eql(u8, what, "hold");
    for (0..try number(u64, words.next())) |_| {
        const m = rx.recv(timeout) catch |e| {
            try say("end {t}", .{e});
            return;
        };
        const sum = std.hash.Crc32.hash(m.payload);
        try say("message type_id={d} tag={d} len={d} crc32={d}", .{ m.type_id, m.tag, m.payload.len, sum });
        if (!hold) rx.release();
    }
    try say("enough", .{});
}

fn number(comptime T: type, text: ?[]const u8) !T {
    return std.fmt.parseInt(T, text orelse return error.NoNumber, 10);
}

fn say(comptime text: []const u8, values: anytype) !void {
    var buffer: [256]u8 = undefined;
    const line = try std.fmt.bufPrint(&buffer, text ++ "\n", values);
    if (linux.write(1, line.ptr, line.len) != line.len) return error.NobodyReads;
}

var input: [4096]u8 = undefined;
var begin: usize = 0;
var filled: usize = 0;

fn nextLine() !?[]const u8 {
    while (true) {
        if (std.mem.indexOfScalarPos(u8, input[0..filled], begin, '\n')) |end| {
            defer begin = end + 1;
            return input[begin..end];
        }
        std.mem.copyForwards(u8, &input, input[begin..filled]);
        filled, begin = .{ filled - begin, 0 };
        const n = linux.read(0, input[filled..].ptr, input.len - filled);
        if (linux.errno(n) != .SUCCESS) return error.NoInput;
        if (n == 0) return null;
        filled += n;
    }
}
