using System;
using System.Collections.Generic;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>
    /// Where a subscriber copies messages to that can be overwritten while they are read, and those that are given out as memory that
    /// can be written, because the log is mapped read-only. None of them moves while another is made.
    /// </summary>
    internal sealed unsafe class Copies
    {
        /// <summary>The smallest chunk, in bytes.</summary>
        private const long Chunk = 64 << 10;

        // The last one is filled next, from taken on.
        private readonly List<(IntPtr At, long Length)> chunks = new List<(IntPtr, long)>();
        private byte* last;
        private long left;

        /// <summary>
        /// Room for length bytes whose address has the same remainder by align, and by a tensor's alignment, as like; null: there is no
        /// memory.
        /// </summary>
        internal byte* Room(long length, byte* like, uint align)
        {
            long mask = Math.Max(align, (long)Facts.TensorAlign) - 1;
            if (left < length + mask && !Grow(length + mask))
            {
                return null;
            }
            long skip = (long)like - (long)last & mask;
            byte* at = last + skip;
            last = at + length;
            left -= skip + length;
            return at;
        }

        private bool Grow(long length)
        {
            length = Math.Max(length, Chunk);
            try
            {
                byte* at = Native.Take(length);
                chunks.Add(((IntPtr)at, length));
                last = at;
                left = length;
                return true;
            }
            catch (OutOfMemoryException)
            {
                return false;
            }
        }

        /// <summary>Every copy is given back. The largest chunk stays: the next batch may fit into it.</summary>
        internal void Clear()
        {
            if (chunks.Count == 0)
            {
                return;
            }
            if (chunks.Count > 1)
            {
                chunks.Sort((a, b) => b.Length.CompareTo(a.Length));
                Free(1);
            }
            last = (byte*)chunks[0].At;
            left = chunks[0].Length;
        }

        /// <summary>The memory goes. Nobody may read a copy any more.</summary>
        internal void Free()
        {
            Free(0);
            last = null;
            left = 0;
        }

        private void Free(int from)
        {
            for (int i = from; i < chunks.Count; i++)
            {
                Native.Free((void*)chunks[i].At);
            }
            chunks.RemoveRange(from, chunks.Count - from);
        }
    }
}
