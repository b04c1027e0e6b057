using System;
using System.Runtime.CompilerServices;
using System.Threading;

namespace Ramway
{
    /// <summary>Lets one thread at a time into a handle, and a close in from any.</summary>
    /// <remarks>
    /// A call stores <c>inside</c> and then loads <c>shut</c>; a close stores <c>shut</c> and then loads <c>inside</c>. At least
    /// one of them has to see the other's store, so there must be a full fence between the two on both sides. The call's is left
    /// out, because a close makes up for it by Interlocked.MemoryBarrierProcessWide, which is there for this: a fence on each
    /// message costs more than all the rest of it. What keeps the compiler from exchanging the two is that both are volatile.
    /// </remarks>
    internal struct Gate
    {
        private const int Closed = 1;
        private const int Dead = 2;

        /// <summary>
        /// 1 while a call is in progress. A second call at the very same moment may go unnoticed; one that finds another one
        /// waiting or working never does.
        /// </summary>
        private int inside;
        /// <summary>What keeps calls out; 0 lets them in.</summary>
        private int shut;

        /// <summary>Begins a call; <see cref="Leave"/> ends it, whatever this said. False: the handle is shut.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        internal bool Enter()
        {
            if (inside != 0)
            {
                ThrowTwoAtOnce();
            }
            Volatile.Write(ref inside, 1);
            return Volatile.Read(ref shut) == 0;
        }

        /// <summary>Ends a call. Release: whoever closes sees all that it did.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        internal void Leave() => Volatile.Write(ref inside, 0);

        /// <summary>Whether calls are kept out, because the handle was closed or is dead.</summary>
        internal bool IsShut => Volatile.Read(ref shut) != 0;

        /// <summary>Whether the handle was closed.</summary>
        internal bool IsClosed => (Volatile.Read(ref shut) & Closed) != 0;

        /// <summary>Whether the handle died.</summary>
        internal bool IsDead => (Volatile.Read(ref shut) & Dead) != 0;

        /// <summary>Marks the handle dead.</summary>
        internal void Die() => Set(Dead);

        /// <summary>Keeps new calls out. Those in progress may go on until <see cref="Empty"/>.</summary>
        internal void Close()
        {
            Set(Closed);
            Interlocked.MemoryBarrierProcessWide();
        }

        /// <summary>Whether no call is in progress, and none comes in after a close.</summary>
        internal bool Empty => Volatile.Read(ref inside) == 0;

        private void Set(int bit)
        {
            int seen;
            do
            {
                seen = Volatile.Read(ref shut);
            }
            while (Interlocked.CompareExchange(ref shut, seen | bit, seen) != seen);
        }

        private static void ThrowTwoAtOnce() => throw new InvalidOperationException(
            "ramway: a sender or receiver is used by two threads at once, or while an asynchronous call of it is pending; only " +
            "Dispose, PeerAlive and PeerEpoch may be called beside another call");
    }
}
