//! Sends lines of standard input, or prints what comes: `ramway-zig send NAME < FILE`, `ramway-zig recv NAME`.

const std = @import("std");
const ramway = @import("ramway.zig");
const linux = std.os.linux;

const usage =
    \\usage: ramway-zig send NAME    each line of standard input is a message
    \\       ramway-zig recv NAME    prints each message as a line, until the sender closes
    \\
;

pub fn main(init: std.process.Init.Minimal) u8 {
    const args = init.args.vector;
    const options: ramway.Options = .{ .directory = init.environ.getPosix("RAMWAY_DIR") };
    if (args.len != 3) return refuse();
    const what, const name = .{ std.mem.span(args[1]), std.mem.span(args[2]) };
    const command: *const fn ([]const u8, ramway.Options) ramway.Error!void =
        if (std.mem.eql(u8, what, "send")) &send else if (std.mem.eql(u8, what, "recv")) &receive else return refuse();
    command(name, options) catch |e| {
        say("ramway-zig: {s} '{s}': {t}\n", .{ what, name, e });
        return if (e == error.PeerDead) 4 else 1;
    };
    return 0;
}

fn refuse() u8 {
    say(usage, .{});
    return 2;
}

fn say(comptime text: []const u8, values: anytype) void {
    var buffer: [512]u8 = undefined;
    write(2, std.fmt.bufPrint(&buffer, text, values) catch "ramway-zig: failed\n");
}

fn write(fd: i32, bytes: []const u8) void {
    var left = bytes;
    while (left.len > 0) {
        const n = linux.write(fd, left.ptr, left.len);
        if (linux.errno(n) != .SUCCESS) linux.exit(1);
        left = left[n..];
    }
}

fn send(name: []const u8, options: ramway.Options) ramway.Error!void {
    var tx = try ramway.Sender.open(name, options);
    defer tx.close();
    var buffer: [65536]u8 = undefined;
    var filled: usize = 0;
    while (true) {
        const n = linux.read(0, buffer[filled..].ptr, buffer.len - filled);
        if (linux.errno(n) != .SUCCESS) return error.Os;
        filled += n;
        var begin: usize = 0;
        while (std.mem.indexOfScalarPos(u8, buffer[0..filled], begin, '\n')) |end| : (begin = end + 1) {
            try tx.send(1, 0, buffer[begin..end], ramway.forever);
        }
        std.mem.copyForwards(u8, &buffer, buffer[begin..filled]);
        filled -= begin;
        if (n == 0) {
            // The last line may end without a newline.
            if (filled > 0) try tx.send(1, 0, buffer[0..filled], ramway.forever);
            return;
        }
        if (filled == buffer.len) return error.TooLarge;
    }
}

fn receive(name: []const u8, options: ramway.Options) ramway.Error!void {
    var rx = try ramway.Receiver.open(name, options);
    defer rx.close();
    while (rx.recv(ramway.forever)) |message| {
        write(1, message.payload);
        write(1, "\n");
        rx.release();
    } else |e| if (e != error.Closed) return e;
}
