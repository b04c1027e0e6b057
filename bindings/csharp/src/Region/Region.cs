using System;
using System.Threading;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>
    /// A stretch of named memory that any number of processes have mapped.
    /// </summary>
    /// <remarks>
    /// <para>
    /// Ramway brings no order into what they write: use <see cref="Int32At"/> and <see cref="Int64At"/> with <see cref="Volatile"/>
    /// and <see cref="Interlocked"/> for what needs one, or <see cref="Notify"/> and Wait: what was written before a Notify is seen
    /// after the Wait that it ended.
    /// </para>
    /// <para>
    /// All calls may be made from any number of threads. The memory stays mapped until <see cref="Dispose"/>, also if the handle
    /// itself is forgotten, because the runtime cannot know of spans that still refer to it. After it, <see cref="Memory"/> throws; a
    /// <see cref="Span{T}"/> that was kept, and a reference, must not be used any more: the memory is unmapped.
    /// </para>
    /// <code>
    /// using var state = Region.OpenOrCreate("state", 4096);
    /// Interlocked.Increment(ref state.Int64At(0));
    /// state.Notify();
    /// </code>
    /// </remarks>
    public sealed unsafe partial class Region : IDisposable
    {
        // Added to users by Dispose: so far below zero that calls do not reach it.
        private const long ClosedBias = long.MinValue / 2;

        private readonly Attachment mapping;
        private readonly WaitMode mode;
        private readonly RegionMemory memory;
        // The calls that are using the mapping, and the pins; below zero once Dispose was called, and the bias when nobody is
        // left. So nothing is unmapped under a call.
        private long users;
        private long pins;
        private int released;
        private volatile bool done;

        private Region(Attachment mapping, bool readOnly, WaitMode mode)
        {
            this.mapping = mapping;
            ReadOnly = readOnly;
            this.mode = mode;
            memory = new RegionMemory(this);
            // What was notified before now is not news to this handle.
            seen = (int)Now();
        }

        /// <summary>
        /// Makes a region of this many bytes (1 or more), all zero. It lives until its last handle in any process is closed.
        /// The name is one in the Ramway directory, or a path with a '/'.
        /// </summary>
        /// <exception cref="RamwayException">
        /// InvalidArgument for a length below 1 or an impossible name, AlreadyExists if the name is in use, NoSpace if there is not
        /// enough memory, PermissionDenied, Unsupported for a file system without shared mappings or locks, and those of the
        /// options.
        /// </exception>
        public static Region Create(string name, long length, RegionOptions? options = null) =>
            New(name, How.Create, length, options, false);

        /// <summary>Opens the region of that name, for reading and writing.</summary>
        /// <exception cref="RamwayException">
        /// NotFound if nothing has this name (after the options' Timeout), PermissionDenied, InvalidArgument if it is something else,
        /// AbiMismatch or Corrupt if the name leads to what is no region of this version, which is left alone.
        /// </exception>
        public static Region Open(string name, RegionOptions? options = null) => New(name, How.Open, 0, options, false);

        /// <summary>
        /// Opens the region of that name without the permission to write. Such a handle cannot notify, and waits by a check every
        /// millisecond.
        /// </summary>
        /// <exception cref="RamwayException">Those of <see cref="Open"/>.</exception>
        public static Region OpenReadOnly(string name, RegionOptions? options = null) => New(name, How.Open, 0, options, true);

        /// <summary>Opens the region of that name, or makes it.</summary>
        /// <exception cref="RamwayException">
        /// Those of <see cref="Create"/> and <see cref="Open"/>; InvalidArgument if it is there with another length.
        /// </exception>
        public static Region OpenOrCreate(string name, long length, RegionOptions? options = null) =>
            New(name, How.OpenOrCreate, length, options, false);

        private static Region New(string name, How how, long length, RegionOptions? options, bool readOnly)
        {
            RegionOptions o = options ?? RegionOptions.Default;
            return new Region(Attachment.NamedRegion(name, how, length, o, readOnly), readOnly, o.Wait);
        }

        /// <summary>The length that the region was created with, in bytes.</summary>
        public long Length => mapping.Length;

        /// <summary>How many bytes are mapped: the length rounded up to a page, or to a huge page.</summary>
        public long Capacity => (long)mapping.Capacity;

        /// <summary>The name or path it was opened by.</summary>
        public string Name => mapping.Name;

        /// <summary>Whether this handle may not write.</summary>
        public bool ReadOnly { get; }

        /// <summary>
        /// All <see cref="Length"/> bytes, the memory itself: what is written here is there for everybody, and what is read may
        /// change while it is read. It must not be used after Dispose. A region longer than 2 GiB: <see cref="Slice"/>.
        /// </summary>
        /// <exception cref="RamwayException">
        /// PermissionDenied on a read-only handle (use <see cref="View"/>), Detached after Dispose, TooLarge if it is longer than a
        /// span can be.
        /// </exception>
        public Span<byte> Data => Slice(0, SpanLength());

        /// <summary>All <see cref="Length"/> bytes for reading, also on a read-only handle. The rules are those of Data.</summary>
        /// <exception cref="RamwayException">Detached after Dispose, TooLarge if it is longer than a span can be.</exception>
        public ReadOnlySpan<byte> View
        {
            get
            {
                using Use use = Enter(nameof(View));
                // Mapped until Dispose, and the length is within the capacity that is.
                return new ReadOnlySpan<byte>(mapping.Data, SpanLength());
            }
        }

        /// <summary>Some of the bytes; the rules are those of <see cref="Data"/>.</summary>
        /// <exception cref="RamwayException">
        /// InvalidArgument if they do not lie within the region, PermissionDenied on a read-only handle, Detached after Dispose.
        /// </exception>
        public Span<byte> Slice(long offset, int length)
        {
            using Use use = EnterWriting(nameof(Slice));
            CheckRange(offset, length);
            return new Span<byte>(mapping.Data + offset, length);
        }

        /// <summary>
        /// All <see cref="Length"/> bytes as memory that may be kept: its use after Dispose is an <see
        /// cref="ObjectDisposedException"/>, and while it is pinned the bytes stay mapped, also after Dispose.
        /// </summary>
        /// <exception cref="RamwayException">As for <see cref="Data"/>.</exception>
        public Memory<byte> Memory
        {
            get
            {
                using Use use = EnterWriting(nameof(Memory));
                SpanLength();
                return memory.Memory;
            }
        }

        /// <summary>
        /// Copies as many bytes out as the buffer has, from an offset on. Others may write meanwhile: each aligned 8-byte word comes
        /// out whole, but one word may be new and the next one old.
        /// </summary>
        /// <exception cref="RamwayException">InvalidArgument if they do not lie within the region, Detached.</exception>
        public void Read(long offset, Span<byte> to)
        {
            using Use use = Enter(nameof(Read));
            CheckRange(offset, to.Length);
            Shared.CopyOut(to, mapping.Data + offset);
        }

        /// <summary>
        /// Copies bytes in at an offset, all or none. To others each aligned 8-byte word appears whole, in no particular order.
        /// </summary>
        /// <exception cref="RamwayException">
        /// InvalidArgument if they do not lie within the region, PermissionDenied on a read-only handle, Detached.
        /// </exception>
        public void Write(long offset, ReadOnlySpan<byte> from)
        {
            using Use use = EnterWriting(nameof(Write));
            CheckRange(offset, from.Length);
            Shared.CopyIn(mapping.Data + offset, from);
        }

        /// <summary>
        /// The 4 bytes at an offset, a multiple of 4, for <see cref="Interlocked"/> and <see cref="Volatile"/>. It must not be used
        /// after Dispose.
        /// </summary>
        /// <exception cref="RamwayException">
        /// InvalidArgument if the offset is not a multiple of 4 or the bytes do not lie within the region, PermissionDenied on a
        /// read-only handle, where a store would end the process (use <see cref="ReadInt32"/>), Detached.
        /// </exception>
        public ref int Int32At(long offset)
        {
            using Use use = EnterWriting(nameof(Int32At));
            return ref *(int*)Word(offset, 4);
        }

        /// <summary>As <see cref="Int32At"/>, with 8 bytes at a multiple of 8.</summary>
        /// <exception cref="RamwayException">As for <see cref="Int32At"/>.</exception>
        public ref long Int64At(long offset)
        {
            using Use use = EnterWriting(nameof(Int64At));
            return ref *(long*)Word(offset, 8);
        }

        /// <summary>The value of the 4 bytes at an offset, atomically and acquiring, also on a read-only handle.</summary>
        /// <exception cref="RamwayException">As for <see cref="Int32At"/>, except PermissionDenied.</exception>
        public int ReadInt32(long offset)
        {
            using Use use = Enter(nameof(ReadInt32));
            return Volatile.Read(ref *(int*)Word(offset, 4));
        }

        /// <summary>The value of the 8 bytes at an offset, atomically and acquiring, also on a read-only handle.</summary>
        /// <exception cref="RamwayException">As for <see cref="Int32At"/>, except PermissionDenied.</exception>
        public long ReadInt64(long offset)
        {
            using Use use = Enter(nameof(ReadInt64));
            return Volatile.Read(ref *(long*)Word(offset, 8));
        }

        /// <summary>
        /// Ends the use of the region; calls that wait end with Detached, and it waits for those that copy. The last handle's
        /// Dispose removes the name unless the region is persistent. Safe from any thread, and more than once.
        /// </summary>
        public void Dispose()
        {
            // One more user, so that the bias is reached by Leave.
            for (;;)
            {
                long users = Interlocked.Read(ref this.users);
                if (users < 0)
                {
                    break;
                }
                if (Interlocked.CompareExchange(ref this.users, users + 1 + ClosedBias, users) == users)
                {
                    InterruptWaiters();
                    Leave();
                    break;
                }
            }
            while (!done)
            {
                // What is pinned is not waited for: its end finishes this.
                long pins = Interlocked.Read(ref this.pins);
                if (pins > 0 && Interlocked.Read(ref this.users) <= ClosedBias + pins)
                {
                    return;
                }
                Thread.Sleep(0);
            }
        }

        /// <summary>A call that keeps the mapping until its end.</summary>
        private readonly ref struct Use
        {
            private readonly Region region;

            internal Use(Region region) => this.region = region;

            public void Dispose() => region.Leave();
        }

        /// <summary>Keeps the mapping until the use ends; Detached if the region is closed.</summary>
        private Use Enter(string what)
        {
            if (Interlocked.Increment(ref users) <= 0)
            {
                Leave();
                throw Closed(what);
            }
            return new Use(this);
        }

        /// <summary>Enter for calls that write.</summary>
        private Use EnterWriting(string what)
        {
            Use use = Enter(what);
            if (ReadOnly)
            {
                use.Dispose();
                throw Fail(ErrorKind.PermissionDenied, what + " on a region that was opened read-only");
            }
            return use;
        }

        private void Leave()
        {
            // Only one call takes the count to the bias for the first time: calls that fail afterwards do so again, in vain.
            if (Interlocked.Decrement(ref users) == ClosedBias && Interlocked.Exchange(ref released, 1) == 0)
            {
                mapping.Release();
                done = true;
            }
        }

        private RamwayException Fail(ErrorKind kind, string text) => Errors.Fail(kind, "using the region", Name, text);

        private RamwayException Closed(string what) => Fail(ErrorKind.Detached, what + " on a region that was closed");

        private int SpanLength() => Length <= int.MaxValue
            ? (int)Length
            : throw Fail(ErrorKind.TooLarge, Length + " bytes are more than a span can have; use Slice, Read and Write");

        private void CheckRange(long offset, int length)
        {
            if (offset < 0 || length < 0 || offset > Length || length > Length - offset)
            {
                throw Fail(ErrorKind.InvalidArgument, length + " bytes at offset " + offset + " of a region of " + Length + " bytes");
            }
        }

        /// <summary>The address of an aligned word within the region; the data begins at a page.</summary>
        private byte* Word(long offset, int size)
        {
            if (offset % size != 0)
            {
                throw Fail(ErrorKind.InvalidArgument,
                    "a word of " + size + " bytes at offset " + offset + ": expected a multiple of " + size);
            }
            CheckRange(offset, size);
            return mapping.Data + offset;
        }

        /// <summary>The bytes as memory that may be kept.</summary>
        private sealed class RegionMemory : System.Buffers.MemoryManager<byte>
        {
            private readonly Region region;

            internal RegionMemory(Region region) => this.region = region;

            public override Span<byte> GetSpan()
            {
                Keep();
                var all = new Span<byte>(region.mapping.Data, (int)region.Length);
                region.Leave();
                return all;
            }

            // Not through GetSpan: the length stays known after the end, so that what is thrown then is one exception.
            public override Memory<byte> Memory => CreateMemory((int)region.Length);

            public override System.Buffers.MemoryHandle Pin(int elementIndex = 0)
            {
                if (elementIndex < 0 || elementIndex > region.Length)
                {
                    throw new ArgumentOutOfRangeException(nameof(elementIndex));
                }
                // Before it counts as a user, so that Dispose never waits for it.
                Interlocked.Increment(ref region.pins);
                try
                {
                    Keep();
                }
                catch
                {
                    Interlocked.Decrement(ref region.pins);
                    throw;
                }
                return new System.Buffers.MemoryHandle(region.mapping.Data + elementIndex, default, this);
            }

            public override void Unpin()
            {
                region.Leave();
                Interlocked.Decrement(ref region.pins);
            }

            protected override void Dispose(bool disposing)
            {
            }

            private void Keep()
            {
                try
                {
                    region.Enter(nameof(Memory));
                }
                catch (RamwayException e)
                {
                    throw new ObjectDisposedException(e.Message, e);
                }
            }
        }
    }
}
