//! The file behind a named ring: its name, its header page, its locks, its mappings (docs/ABI.md, sections 2, 3, 10, 11).

const std = @import("std");
const facts = @import("facts.zig");
const sys = @import("sys.zig");
const Error = facts.Error;
const linux = std.os.linux;

pub const Role = enum {
    producer,
    consumer,

    pub fn other(self: Role) Role {
        return if (self == .producer) .consumer else .producer;
    }

    fn lockByte(self: Role) i64 {
        return if (self == .producer) facts.byte_producer else facts.byte_consumer;
    }
};

pub const Options = struct {
    /// Bytes of a new ring, rounded up to a power of two of at least a page; 0 is 1 MiB. A ring that exists must have it,
    /// unless it is 0.
    capacity: u64 = 0,
    /// What each payload's address is a multiple of: a power of two from 16 to 4096; 0 is 16 or what a ring has.
    alignment: u32 = 0,
    /// Where names stand: RAMWAY_DIR. null is /dev/shm/ramway-<euid>.
    directory: ?[]const u8 = null,
    /// Whether to make the ring if nothing has the name.
    create: bool = true,
    /// How long to wait for a role that is taken and, without `create`, for the name. Races with others who create or
    /// remove the same name are retried for a second in any case.
    timeout_ns: u64 = 0,
};

/// A role of a named ring, held until `close`, and the ring's memory.
pub const Segment = struct {
    dir: sys.Fd,
    name: Name,
    /// The description that holds the locks. It is used for nothing else.
    lock: sys.Fd,
    id: sys.Stat,
    role: Role,
    header: [*]align(sys.page) u8,
    /// `capacity` bytes, mapped twice back to back.
    data: [*]align(sys.page) u8,
    capacity: u64,
    alignment: u32,

    /// Opens a ring by its name or path, or makes it, and takes a role.
    pub fn open(name: []const u8, role: Role, options: Options) Error!Segment {
        if (options.alignment != 0) _ = try validAlignment(options.alignment, error.InvalidArgument);
        const deadline = sys.now() +| options.timeout_ns;
        const race_deadline = @max(deadline, sys.now() + facts.race_timeout_ns);
        while (true) {
            return attempt(name, role, options, deadline) catch |e| switch (e) {
                error.Race => {
                    if (sys.now() >= race_deadline) return error.TimedOut;
                    sys.sleep(sys.ns_per_ms);
                    continue;
                },
                error.NotFound => {
                    if (sys.now() >= deadline) return error.NotFound;
                    sys.sleep(sys.ns_per_ms);
                    continue;
                },
                else => |other| return other,
            };
        }
    }

    pub fn peerAlive(self: *const Segment) bool {
        return sys.isHeld(self.lock, self.role.other().lockByte());
    }

    /// Whether the ring has lost its name, so that no successor can attach.
    pub fn nameGone(self: *const Segment) bool {
        const now = sys.stat(self.lock, "") catch return false;
        return now.links == 0;
    }

    /// Unmaps the memory, releases the role and, as the last one out of a ring with nothing undelivered, removes the name.
    pub fn close(self: *Segment) void {
        sys.unmap(self.data, 2 * self.capacity);
        sys.unmap(self.header, facts.header_size);
        _ = sys.lockByte(self.lock, self.role.lockByte(), .none) catch {};
        // Released first and then tried: if two that leave at once both tried to turn their shared lock into an exclusive
        // one, both would fail and the name would stay.
        _ = sys.lockByte(self.lock, facts.byte_in_use, .none) catch {};
        removeIfAlone(self.dir, &self.name, self.lock, self.id, mayGo) catch {};
        sys.close(self.lock);
        sys.close(self.dir);
    }
};

/// A file's name in its directory, as system calls want it.
const Name = struct {
    bytes: [256]u8,
    len: usize,

    fn z(self: *const Name) [*:0]const u8 {
        return @ptrCast(&self.bytes);
    }
};

fn nameOf(text: []const u8) Error!Name {
    if (text.len == 0 or text.len > 255 or std.mem.indexOfScalar(u8, text, 0) != null) return error.InvalidArgument;
    var name: Name = .{ .bytes = @splat(0), .len = text.len };
    @memcpy(name.bytes[0..text.len], text);
    return name;
}

/// The directory of a name or path, opened, and the name in it.
fn resolve(text: []const u8, options: Options) Error!struct { sys.Fd, Name } {
    if (std.mem.lastIndexOfScalar(u8, text, '/')) |slash| {
        return .{ try openDirectory(text[0..@max(slash, 1)], .{}), try nameOf(text[slash + 1 ..]) };
    }
    if (text.len > facts.name_max or text.len == 0 or text[0] == '.' or std.mem.endsWith(u8, text, facts.socket_suffix)) return error.InvalidArgument;
    for (text) |c| {
        if (!std.ascii.isAlphanumeric(c) and std.mem.indexOfScalar(u8, "._-", c) == null) return error.InvalidArgument;
    }
    if (options.directory) |given| if (given.len > 0) return .{ try openDirectory(given, .{}), try nameOf(text) };
    // Everybody may make a directory or a link of this name, so what it is and whose is checked.
    var buffer: [64]u8 = undefined;
    const user = linux.geteuid();
    const path = std.fmt.bufPrintSentinel(&buffer, "/dev/shm/ramway-{d}", .{user}, 0) catch unreachable;
    if (options.create) sys.makeDirectory(path.ptr) catch |e| if (e != error.AlreadyExists) return e;
    const dir = try openDirectory(path, .{ .NOFOLLOW = true });
    errdefer sys.close(dir);
    const found = try sys.stat(dir, "");
    if (found.user != user or found.mode & 0o077 != 0) return error.PermissionDenied;
    return .{ dir, try nameOf(text) };
}

fn openDirectory(path: []const u8, flags: linux.O) Error!sys.Fd {
    var buffer: [4096]u8 = undefined;
    const z = std.fmt.bufPrintSentinel(&buffer, "{s}", .{path}, 0) catch return error.InvalidArgument;
    var all = flags;
    all.DIRECTORY = true;
    all.PATH = true;
    return sys.open(linux.AT.FDCWD, z.ptr, all, 0);
}

const Attempt = Error || error{Race};

fn attempt(text: []const u8, role: Role, options: Options, deadline: u64) Attempt!Segment {
    const dir, const name = try resolve(text, options);
    errdefer sys.close(dir);
    return openExisting(dir, name, role, options, deadline) catch |e| {
        if (e != error.NotFound or !options.create) return e;
        return create(dir, name, role, options);
    };
}

fn openExisting(dir: sys.Fd, name: Name, role: Role, options: Options, deadline: u64) Attempt!Segment {
    const named = try sys.stat(dir, name.z());
    if (!named.isRegular()) return error.InvalidArgument;
    // If the file is exchanged meanwhile, the open neither blocks nor follows a link nor takes a terminal.
    const flags: linux.O = .{ .ACCMODE = .RDWR, .NOFOLLOW = true, .NONBLOCK = true, .NOCTTY = true };
    const file = try sys.open(dir, name.z(), flags, 0);
    defer sys.close(file);
    const id = try sys.stat(file, "");
    if (!id.isRegular()) return error.InvalidArgument;
    if (!try sys.onTmpfs(file)) return error.Unsupported;
    var page: [facts.header_size]u8 = @splat(0);
    _ = try sys.readAt(file, &page, 0);
    const geometry = try check(&page, id.size);
    const lock = try sys.open(dir, name.z(), flags, 0);
    errdefer sys.close(lock);
    if (!id.sameFile(try sys.stat(lock, ""))) return error.Race;
    if (ofAnotherBoot(&page)) {
        // Nobody may resume it. A creator removes it first.
        if (options.create) try removeIfAlone(dir, &name, lock, id, always);
        return error.NotFound;
    }
    if (options.capacity != 0 and try roundCapacity(options.capacity) != geometry.capacity) return error.InvalidArgument;
    if (options.alignment != 0 and options.alignment != geometry.alignment) return error.InvalidArgument;
    if (!try sys.lockByte(lock, facts.byte_in_use, .shared)) return error.Race;
    // Byte 0 stays locked while the role is taken: with it released, this side could be the last one out of a ring whose
    // holder dies just then.
    while (true) {
        if (!leadsTo(dir, &name, id)) return error.Race;
        if (try sys.lockByte(lock, role.lockByte(), .exclusive)) break;
        if (sys.now() >= deadline) return error.Busy;
        sys.sleep(sys.ns_per_ms);
    }
    return mapped(dir, name, file, lock, id, role, geometry);
}

/// Makes the ring whole under no name, with its locks taken, and then gives it its name: nobody ever sees half of one.
fn create(dir: sys.Fd, name: Name, role: Role, options: Options) Attempt!Segment {
    if (!try sys.onTmpfs(dir)) return error.Unsupported;
    const file = try sys.open(dir, ".", .{ .ACCMODE = .RDWR, .TMPFILE = true, .DIRECTORY = true }, 0o600);
    defer sys.close(file);
    var buffer: [32]u8 = undefined;
    const again = std.fmt.bufPrintSentinel(&buffer, "/proc/self/fd/{d}", .{file}, 0) catch unreachable;
    const lock = try sys.open(linux.AT.FDCWD, again.ptr, .{ .ACCMODE = .RDWR }, 0);
    errdefer sys.close(lock);
    if (!try sys.lockByte(lock, facts.byte_in_use, .shared)) return error.Race;
    if (!try sys.lockByte(lock, role.lockByte(), .exclusive)) return error.Race;
    const geometry: Geometry = .{
        .data_offset = std.heap.pageSize(),
        .capacity = try roundCapacity(if (options.capacity == 0) facts.capacity_default else options.capacity),
        .alignment = if (options.alignment == 0) facts.align_min else options.alignment,
    };
    try sys.allocate(file, geometry.data_offset + geometry.capacity);
    const segment = try mapped(dir, name, file, lock, try sys.stat(file, ""), role, geometry);
    errdefer {
        sys.unmap(segment.data, 2 * segment.capacity);
        sys.unmap(segment.header, facts.header_size);
    }
    format(segment.header[0..facts.header_size], geometry);
    sys.link(file, dir, name.z()) catch |e| return if (e == error.AlreadyExists) error.Race else e;
    return segment;
}

fn mapped(dir: sys.Fd, name: Name, file: sys.Fd, lock: sys.Fd, id: sys.Stat, role: Role, geometry: Geometry) Error!Segment {
    const header = try sys.map(file, 0, facts.header_size);
    errdefer sys.unmap(header, facts.header_size);
    return .{
        .dir = dir,
        .name = name,
        .lock = lock,
        .id = id,
        .role = role,
        .header = header,
        .data = try sys.mapTwice(file, geometry.data_offset, geometry.capacity),
        .capacity = geometry.capacity,
        .alignment = geometry.alignment,
    };
}

fn leadsTo(dir: sys.Fd, name: *const Name, id: sys.Stat) bool {
    const now = sys.stat(dir, name.z()) catch return false;
    return id.sameFile(now);
}

/// Removes the name if nobody else uses the segment, the name still leads to it, and `may` finds that nothing needs it.
fn removeIfAlone(dir: sys.Fd, name: *const Name, lock: sys.Fd, id: sys.Stat, may: *const fn (sys.Fd) bool) Error!void {
    if (!try sys.lockByte(lock, facts.byte_in_use, .exclusive)) return;
    // Not by closing alone: a child between fork and exec may still have a copy of the descriptor.
    defer _ = sys.lockByte(lock, facts.byte_in_use, .none) catch {};
    if (leadsTo(dir, name, id) and may(lock)) try sys.unlink(dir, name.z());
}

fn always(_: sys.Fd) bool {
    return true;
}

/// Nothing is undelivered, and the name is not persistent. What is not understood is not thrown away.
fn mayGo(file: sys.Fd) bool {
    var page: [facts.header_size]u8 = @splat(0);
    _ = sys.readAt(file, &page, 0) catch return false;
    const geometry = check(&page, (sys.stat(file, "") catch return false).size) catch return false;
    const block = page[facts.block0..];
    const tail, const head = .{ number(u64, block, facts.off_tail), number(u64, block, facts.off_head) };
    const epoch = number(u32, block, facts.off_producer + facts.off_role_epoch);
    const closed = number(u32, block, facts.off_producer + facts.off_role_flags) & facts.role_closed != 0;
    const seen = number(u32, block, facts.off_consumer + facts.off_role_close_seen);
    return number(u32, &page, facts.off_flags) & facts.flag_persistent == 0 and tail == head and
        positionsAgree(tail, head, geometry.capacity, geometry.alignment) and !(closed and epoch != 0 and seen != epoch);
}

const Geometry = struct { data_offset: u64, capacity: u64, alignment: u32 };

fn number(comptime T: type, bytes: []const u8, at: usize) T {
    return std.mem.readInt(T, bytes[at..][0..@sizeOf(T)], .little);
}

/// Whether a header page is that of a ring that can be used here, in the order of section 16. `page` is a private copy: each
/// number is read once, and what was checked is what is used.
fn check(page: *const [facts.header_size]u8, file_size: u64) Error!Geometry {
    if (!std.mem.eql(u8, page[0..8], facts.magic)) return error.AbiMismatch;
    if (file_size < facts.header_size) return error.Corrupt;
    switch (number(u32, page, facts.off_byte_order)) {
        facts.byte_order => {},
        facts.byte_order_swapped => return error.AbiMismatch,
        else => return error.Corrupt,
    }
    if (number(u16, page, facts.off_version_major) != facts.version_major) return error.AbiMismatch;
    if (number(u32, page, facts.off_features_required) & ~facts.features_known != 0) return error.AbiMismatch;
    const kind = number(u32, page, facts.off_kind);
    if (kind < facts.kind_region or kind > facts.kind_listener) return error.AbiMismatch;
    if (number(u64, page, facts.off_size) != file_size) return error.Corrupt;
    if (kind != facts.kind_ring) return error.InvalidArgument;
    const block = page[facts.block0..];
    const found: Geometry = .{
        .data_offset = number(u64, block, facts.off_data_offset),
        .capacity = number(u64, block, facts.off_capacity),
        .alignment = number(u32, block, facts.off_align),
    };
    if (found.data_offset < facts.header_size or found.data_offset % facts.header_size != 0) return error.Corrupt;
    const end = std.math.add(u64, found.data_offset, found.capacity) catch return error.Corrupt;
    if (end > file_size) return error.Corrupt;
    const own = std.heap.pageSize();
    if (found.data_offset % own != 0 or found.capacity % own != 0) return error.AbiMismatch;
    if (found.capacity < facts.header_size or !std.math.isPowerOfTwo(found.capacity)) return error.Corrupt;
    if (try validAlignment(found.alignment, error.Corrupt) > found.capacity) return error.Corrupt;
    return found;
}

fn validAlignment(alignment: u32, wrong: Error) Error!u32 {
    if (alignment < facts.align_min or alignment > facts.align_max or !std.math.isPowerOfTwo(alignment)) return wrong;
    return alignment;
}

fn roundCapacity(asked: u64) Error!u64 {
    if (asked > 1 << 62) return error.NoSpace;
    return std.math.ceilPowerOfTwoAssert(u64, @max(asked, std.heap.pageSize()));
}

/// Fills in the header page of a new ring, whose bytes are 0.
fn format(page: *[facts.header_size]u8, geometry: Geometry) void {
    @memcpy(page[0..8], facts.magic);
    const block = page[facts.block0..];
    store(u32, page, facts.off_byte_order, facts.byte_order);
    store(u16, page, facts.off_version_major, facts.version_major);
    store(u32, page, facts.off_kind, facts.kind_ring);
    store(u64, page, facts.off_size, geometry.data_offset + geometry.capacity);
    store(u64, page, facts.off_created_ns, sys.wallClock());
    @memcpy(page[facts.off_boot_id..][0..16], &bootId());
    store(u64, block, facts.off_data_offset, geometry.data_offset);
    store(u64, block, facts.off_capacity, geometry.capacity);
    store(u32, block, facts.off_align, geometry.alignment);
    store(u64, block, facts.off_tail, geometry.alignment - facts.frame_header);
    store(u64, block, facts.off_head, geometry.alignment - facts.frame_header);
}

fn store(comptime T: type, bytes: []u8, at: usize, value: T) void {
    std.mem.writeInt(T, bytes[at..][0..@sizeOf(T)], value, .little);
}

/// Whether two positions could be those of a ring at rest: where frames can begin, and at most a capacity apart.
pub fn positionsAgree(tail: u64, head: u64, capacity: u64, alignment: u32) bool {
    const first = alignment - facts.frame_header;
    return tail % alignment == first and head % alignment == first and tail -% head <= capacity;
}

/// The kernel's number of this boot; all zero where it does not tell.
fn bootId() [16]u8 {
    var text: [37]u8 = @splat(0);
    const none: [16]u8 = @splat(0);
    const file = sys.open(linux.AT.FDCWD, "/proc/sys/kernel/random/boot_id", .{}, 0) catch return none;
    defer sys.close(file);
    _ = sys.readAt(file, &text, 0) catch return none;
    var id = none;
    var digits: usize = 0;
    for (text) |c| {
        const digit = std.fmt.charToDigit(c, 16) catch continue;
        if (digits == 32) return none;
        id[digits / 2] = id[digits / 2] << 4 | digit;
        digits += 1;
    }
    return if (digits == 32) id else none;
}

fn ofAnotherBoot(page: *const [facts.header_size]u8) bool {
    const none: [16]u8 = @splat(0);
    const found, const own = .{ page[facts.off_boot_id..][0..16].*, bootId() };
    // All zero on either side is not known, and so not held against the segment.
    return !std.mem.eql(u8, &found, &none) and !std.mem.eql(u8, &own, &none) and !std.mem.eql(u8, &found, &own);
}
