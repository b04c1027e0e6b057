using System;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>What has become of a name that was to be removed.</summary>
    internal enum Removal
    {
        Removed,
        /// <summary>There was a reason to keep it.</summary>
        Kept,
        InUse,
        /// <summary>Another process is alone with it, and removes it or creates over it.</summary>
        Contended,
        /// <summary>The name leads to something else by now.</summary>
        Moved,
    }

    /// <summary>
    /// Removing the name of a segment that nobody uses. Everything that does so comes here: a creator that finds a dead segment,
    /// the last handle, Segments.Unlink and Segments.Clean.
    /// </summary>
    internal static class StaleName
    {
        /// <summary>
        /// Removes the name of a segment, and a dead listener's socket with it, unless it is in use or keep, which is asked
        /// while it is not, gives a reason.
        /// </summary>
        /// <param name="name">The name.</param>
        /// <param name="stat">The file that it led to when the segment was judged.</param>
        /// <param name="kind">What the segment holds.</param>
        /// <param name="keep">Why it must stay; null: it may go.</param>
        /// <param name="reason">What keep gave.</param>
        internal static Removal Remove(SegmentName name, in Stat stat, SegmentKind kind, Func<string?> keep, out string? reason)
        {
            reason = null;
            SegmentLink? link = SegmentLink.Open(name, stat, false);
            if (link == null)
            {
                return Removal.Moved;
            }
            try
            {
                if (Errors.Check(link.TryAlone(), "locking byte 0 of the segment") == 0)
                {
                    return link.InUseByAnother() ? Removal.InUse : Removal.Contended;
                }
                if (!link.HasName())
                {
                    return Removal.Moved;
                }
                reason = keep();
                if (reason != null)
                {
                    return Removal.Kept;
                }
                if (kind == SegmentKind.Listener)
                {
                    // Whatever comes of it, the segment goes.
                    string socket = Names.SocketOf(name.File);
                    SocketName.RemoveDead(name.Dir, socket, Names.Beside(name.Path, socket), out _, out _);
                }
                Unlink(name.Dir, name.File, "removing the dead segment");
                return Removal.Removed;
            }
            finally
            {
                link.Close();
            }
        }

        /// <summary>
        /// The last handle, which holds byte 0 exclusively: removes the name if nothing needs it any more. Of a listener the segment
        /// only: its socket is its own to remove.
        /// </summary>
        internal static void RemoveByLast(SegmentLink link, int file, int dir, string name)
        {
            try
            {
                if (link.HasName())
                {
                    byte[] page = SegmentFile.ReadPage(file, out ulong size);
                    if (!Undelivered.MustStay(file, page, Header.Check(page, size)))
                    {
                        Unlink(dir, name, "removing the name");
                    }
                }
            }
            catch (RamwayException)
            {
                // What cannot be judged or removed stays.
            }
        }

        private static void Unlink(int dir, string file, string doing)
        {
            int result = Files.Unlink(dir, file);
            Errors.Check(result == -Errno.ENOENT ? 0 : result, doing);
        }
    }
}
