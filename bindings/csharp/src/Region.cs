using System;
using System.Threading;

namespace Ramway
{
    /// <summary>A stretch of named memory that any number of processes have mapped.</summary>
    public sealed unsafe partial class Region : IDisposable
    {
        /// <summary>Makes a region of so many bytes, all zero.</summary>
        public static Region Create(string name, long length, RegionOptions? options = null) => throw new NotImplementedException();

        /// <summary>Opens the region of that name.</summary>
        public static Region Open(string name, RegionOptions? options = null) => throw new NotImplementedException();

        /// <summary>Opens the region of that name without the permission to write.</summary>
        public static Region OpenReadOnly(string name, RegionOptions? options = null) => throw new NotImplementedException();

        /// <summary>Opens the region of that name, or makes it.</summary>
        public static Region OpenOrCreate(string name, long length, RegionOptions? options = null) => throw new NotImplementedException();

        /// <summary>All bytes, the memory itself.</summary>
        public Span<byte> Data => throw new NotImplementedException();

        /// <summary>All bytes, to be kept: throws once the region is closed.</summary>
        public Memory<byte> Memory => throw new NotImplementedException();

        /// <summary>The size in bytes.</summary>
        public long Length => throw new NotImplementedException();

        /// <summary>A number that changes with each notification.</summary>
        public uint Count => throw new NotImplementedException();

        /// <summary>Tells everyone who waits that something has changed.</summary>
        public void Notify() => throw new NotImplementedException();

        /// <summary>Waits until Count differs from seen, and gives it.</summary>
        public uint Wait(uint seen, TimeSpan? timeout = null, CancellationToken cancellationToken = default) =>
            throw new NotImplementedException();

        /// <summary>Ends the use of the region.</summary>
        public void Dispose() => throw new NotImplementedException();
    }
}
