using System.Threading;

namespace Ramway
{
    /// <summary>How a stream has ended.</summary>
    internal enum Ending
    {
        /// <summary>It has not.</summary>
        None,
        Closed,
        Dead,
        /// <summary>The segment has lost its name, so no successor can attach.</summary>
        NameGone,
    }

    /// <summary>
    /// When a peer counts as closed or dead (docs/ABI.md, section 8). This is the only place that decides it: sender and receiver
    /// ask while they wait and in each call that finds nothing, WaitForPeer asks where an end is final.
    /// </summary>
    internal unsafe readonly struct PeerState
    {
        private readonly RoleLine* words;
        private readonly bool final;
        private readonly uint delivered;

        /// <param name="words">What the peer's role says of itself, mapped as long as this is used.</param>
        /// <param name="final">No successor can come: the peer was there when this end was made, also while its epoch is 0.</param>
        /// <param name="delivered">On a named ring, the epoch whose close an earlier holder of this role has met, or 0.</param>
        internal PeerState(RoleLine* words, bool final, uint delivered)
        {
            this.words = words;
            this.final = final;
            this.delivered = delivered;
        }

        /// <summary>
        /// Whether the peer has ended, and its epoch, which is over then: if a successor of that epoch ended, the epoch's own peer
        /// did too. The kernel is asked only if askKernel: at most three system calls.
        /// </summary>
        /// <remarks>What was committed before the end is visible to a caller that checks after this has returned.</remarks>
        internal Ending End(bool askKernel, ILink link, Role me, out uint epoch)
        {
            epoch = Epoch;
            if (HasClosed(epoch))
            {
                return Ending.Closed;
            }
            if (!askKernel)
            {
                return Ending.None;
            }
            if (link.Vanished())
            {
                return Ending.NameGone;
            }
            if (!Came(epoch) || link.PeerAlive(me))
            {
                return Ending.None;
            }
            // A close comes before the lock or the socket goes: so check for it once more after that was seen gone. The epoch
            // too: the peer may have attached after the first load.
            epoch = Epoch;
            if (HasClosed(epoch))
            {
                return Ending.Closed;
            }
            // And a successor takes the lock before it clears the flag of that close.
            return link.PeerAlive(me) ? Ending.None : Ending.Dead;
        }

        /// <summary>
        /// Acquire: pairs with the release of the peer's attach. Loaded before the flags: those of the epoch's holder or of a later one.
        /// </summary>
        private uint Epoch => Volatile.Read(ref words->Epoch);

        /// <summary>Acquire: pairs with the release of the peer's close; what it published before is visible.</summary>
        private bool HasClosed(uint epoch) =>
            epoch != 0 && Came(epoch) && (Volatile.Read(ref words->Flags) & Facts.RoleClosed) != 0;

        /// <summary>Whether there is a peer that can end. On a named ring nobody has to have come yet.</summary>
        private bool Came(uint epoch) => final || epoch != 0 && epoch != delivered;
    }
}
