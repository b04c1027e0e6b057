//! System calls. Linux only: what another system needs in their place stands in sections 7, 11 and 12 of docs/ABI.md.

const std = @import("std");
const linux = std.os.linux;
const facts = @import("facts.zig");
const Error = facts.Error;

pub const Fd = linux.fd_t;
pub const page = 4096;
pub const ns_per_ms = std.time.ns_per_ms;

/// The error of a system call. Numbers that a caller treats in its own way are checked there before.
pub fn failure(e: linux.E) Error {
    return switch (e) {
        .NOENT => error.NotFound,
        .EXIST => error.AlreadyExists,
        .ACCES, .PERM, .ROFS => error.PermissionDenied,
        .NOMEM, .NOSPC, .DQUOT => error.NoSpace,
        .OPNOTSUPP, .NOSYS => error.Unsupported,
        .INTR => error.Interrupted,
        else => error.Os,
    };
}

/// The result of a system call, which is made again where a signal interrupted it.
fn call(comptime function: anytype, args: anytype) Error!usize {
    while (true) {
        const result = @call(.auto, function, args);
        switch (linux.errno(result)) {
            .SUCCESS => return result,
            .INTR => {},
            else => |e| return failure(e),
        }
    }
}

pub fn open(dir: Fd, path: [*:0]const u8, flags: linux.O, mode: linux.mode_t) Error!Fd {
    var all = flags;
    all.CLOEXEC = true;
    return @intCast(try call(linux.openat, .{ dir, path, all, mode }));
}

pub fn close(fd: Fd) void {
    _ = linux.close(fd); // the descriptor is gone whatever this says
}

/// What makes a file the same file, and what else `stat` says of it.
pub const Stat = struct {
    device: u64,
    inode: u64,
    links: u32,
    size: u64,
    mode: u32,
    user: u32,

    pub fn isRegular(self: Stat) bool {
        return self.mode & linux.S.IFMT == linux.S.IFREG;
    }

    pub fn sameFile(self: Stat, other: Stat) bool {
        return self.device == other.device and self.inode == other.inode;
    }
};

/// Of an open file with an empty path, else of a name, of which a symbolic link is not followed.
pub fn stat(dir: Fd, path: [*:0]const u8) Error!Stat {
    var found: linux.Statx = undefined;
    const flags: u32 = linux.AT.SYMLINK_NOFOLLOW | linux.AT.EMPTY_PATH;
    _ = try call(linux.statx, .{ dir, path, flags, linux.STATX.BASIC_STATS, &found });
    return .{
        .device = @as(u64, found.dev_major) << 32 | found.dev_minor,
        .inode = found.ino,
        .links = found.nlink,
        .size = found.size,
        .mode = found.mode,
        .user = found.uid,
    };
}

/// Whether a file lies in memory: on anything else the kernel writes pages back, and locks may not reach everybody.
pub fn onTmpfs(fd: Fd) Error!bool {
    var found: [16]u64 = undefined; // struct statfs has 120 bytes and begins with the type
    _ = try call(linux.syscall2, .{ .fstatfs, @as(usize, @intCast(fd)), @intFromPtr(&found) });
    return found[0] == 0x0102_1994;
}

pub fn readAt(fd: Fd, buffer: []u8, offset: i64) Error!usize {
    return call(linux.pread, .{ fd, buffer.ptr, buffer.len, offset });
}

/// Takes the space of a new file, so that no later store meets a full tmpfs, which would be a SIGBUS.
pub fn allocate(fd: Fd, size: u64) Error!void {
    _ = try call(linux.fallocate, .{ fd, 0, 0, @as(i64, @intCast(size)) });
}

/// Gives a nameless file its name. `AlreadyExists` if somebody was faster.
pub fn link(fd: Fd, dir: Fd, name: [*:0]const u8) Error!void {
    var buffer: [32]u8 = undefined;
    const path = std.fmt.bufPrintSentinel(&buffer, "/proc/self/fd/{d}", .{fd}, 0) catch unreachable;
    _ = try call(linux.linkat, .{ linux.AT.FDCWD, path.ptr, dir, name, linux.AT.SYMLINK_FOLLOW });
}

pub fn unlink(dir: Fd, name: [*:0]const u8) Error!void {
    _ = try call(linux.unlinkat, .{ dir, name, 0 });
}

pub fn makeDirectory(path: [*:0]const u8) Error!void {
    _ = try call(linux.mkdir, .{ path, 0o700 });
}

/// Maps a part of a file, shared and writable.
pub fn map(fd: Fd, offset: u64, size: usize) Error![*]align(page) u8 {
    return mapAt(null, fd, offset, size);
}

fn mapAt(at: ?[*]u8, fd: Fd, offset: u64, size: usize) Error![*]align(page) u8 {
    const address = try call(linux.mmap, .{
        at, size, linux.PROT{ .READ = true, .WRITE = true }, linux.MAP{ .TYPE = .SHARED, .FIXED = at != null }, fd, @as(i64, @intCast(offset)),
    });
    return @ptrFromInt(address);
}

/// Maps a part of a file twice, back to back: byte i and byte i + size are one byte of memory.
pub fn mapTwice(fd: Fd, offset: u64, size: usize) Error![*]align(page) u8 {
    const reserved = try call(linux.mmap, .{
        @as(?[*]u8, null), 2 * size, linux.PROT{}, linux.MAP{ .TYPE = .PRIVATE, .ANONYMOUS = true, .NORESERVE = true }, -1, 0,
    });
    const at: [*]align(page) u8 = @ptrFromInt(reserved);
    errdefer unmap(at, 2 * size);
    _ = try mapAt(at, fd, offset, size);
    _ = try mapAt(at + size, fd, offset, size);
    return at;
}

pub fn unmap(at: [*]align(page) u8, size: usize) void {
    _ = linux.munmap(at, size);
}

pub const Lock = enum(i16) { shared = 0, exclusive = 1, none = 2 };

/// Locks one byte by an open file description, which the kernel ends however the process dies. False: another has it.
pub fn lockByte(fd: Fd, byte: i64, how: Lock) Error!bool {
    var range = std.mem.zeroInit(linux.Flock, .{ .type = @as(i16, @backingInt(how)), .start = byte, .len = 1 });
    while (true) {
        switch (linux.errno(linux.fcntl(fd, 37, @intFromPtr(&range)))) { // F_OFD_SETLK
            .SUCCESS => return true,
            .AGAIN, .ACCES => return false,
            .INTR => {},
            else => |e| return failure(e),
        }
    }
}

/// Whether another description has the byte locked. Says yes where it cannot know.
pub fn isHeld(fd: Fd, byte: i64) bool {
    var range = std.mem.zeroInit(linux.Flock, .{ .type = @as(i16, @backingInt(Lock.exclusive)), .start = byte, .len = 1 });
    _ = call(linux.fcntl, .{ fd, 36, @intFromPtr(&range) }) catch return true; // F_OFD_GETLK
    return range.type != @backingInt(Lock.none);
}

/// Sleeps while the word holds `expected`, for at most `ns`. Whatever ended it, the caller checks again.
pub fn futexWait(word: *const u32, expected: u32, ns: u64) void {
    const limit: linux.timespec = .{ .sec = @intCast(ns / std.time.ns_per_s), .nsec = @intCast(ns % std.time.ns_per_s) };
    _ = linux.futex(word, .{ .cmd = .WAIT, .private = false }, expected, .{ .timeout = &limit }, null, 0);
}

/// Wakes all who sleep on the word: one that was killed may still be queued and would swallow a single wake-up.
pub fn futexWake(word: *const u32) void {
    _ = linux.futex_3arg(word, .{ .cmd = .WAKE, .private = false }, std.math.maxInt(i32));
}

/// Nanoseconds on the monotonic clock.
pub fn now() u64 {
    return clock(.MONOTONIC);
}

/// Nanoseconds since 1970.
pub fn wallClock() u64 {
    return clock(.REALTIME);
}

fn clock(which: linux.clockid_t) u64 {
    var time: linux.timespec = undefined;
    _ = linux.clock_gettime(which, &time); // fails only for a clock that does not exist
    return @as(u64, @intCast(time.sec)) * std.time.ns_per_s + @as(u64, @intCast(time.nsec));
}

pub fn sleep(ns: u64) void {
    const time: linux.timespec = .{ .sec = @intCast(ns / std.time.ns_per_s), .nsec = @intCast(ns % std.time.ns_per_s) };
    _ = linux.nanosleep(&time, null); // a signal may shorten it
}
