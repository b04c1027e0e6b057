using System.Runtime.CompilerServices;
using System.Threading;

namespace Ramway
{
    /// <summary>Lets one thread at a time use a handle, and a close in from any thread.</summary>
    /// <remarks>
    /// A call stores into <c>state</c> and then loads <c>shut</c>; a close stores <c>shut</c> and then loads <c>state</c>. At
    /// least one of them has to see the other's store, so there must be a full fence between the two on both sides. The call's is
    /// left out, because a close makes up for it by Interlocked.MemoryBarrierProcessWide, which exists for this: a fence on each
    /// message costs more than all the rest of it. What keeps the compiler from exchanging the two is that both are volatile.
    /// </remarks>
    internal struct CallGuard
    {
        private const int Closed = 1;
        private const int Dead = 2;

        // In the low two bits of state. The rest of it counts what was out and has ended.
        private const uint Calling = 1;
        private const uint Out = 2;
        private const uint Mask = 3;

        /// <summary>
        /// What keeps other calls out: a call in progress, or a slot, message or batch that is out, and then all of this word is
        /// its ticket: good for as long as it stands here. (One that was kept over 2^30 others would pass for a later one.) A
        /// second call at the very same moment may go unnoticed; one that finds another one waiting or working never does.
        /// </summary>
        private uint state;
        /// <summary>What keeps all calls out; 0 lets them in.</summary>
        private int shut;

        /// <summary>Whether a call is in progress or something is out.</summary>
        internal bool IsTaken
        {
            [MethodImpl(MethodImplOptions.AggressiveInlining)]
            get => (state & Mask) != 0;
        }

        /// <summary>Whether a call is in progress. After a close that is false, none begins.</summary>
        internal bool IsCalling => (Volatile.Read(ref state) & Mask) == Calling;

        /// <summary>
        /// Whether a slot, message or batch is out. While it is, a close leaves the memory mapped, for its end to finish.
        /// </summary>
        internal bool IsOut => (Volatile.Read(ref state) & Mask) == Out;

        /// <summary>
        /// Begins a call, which <see cref="Leave"/> or <see cref="LeaveOut"/> ends, whatever this said. False: the handle is shut.
        /// </summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        internal bool Enter()
        {
            Volatile.Write(ref state, state & ~Mask | Calling);
            return Volatile.Read(ref shut) == 0;
        }

        /// <summary>
        /// Begins a call that gives something out, and gives its ticket. If it turns out that nothing is to be given out, <see
        /// cref="Enter"/> and <see cref="Leave"/> follow, and then a check whether a close took it for out.
        /// </summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        internal uint EnterOut()
        {
            uint ticket = state | Out;
            Volatile.Write(ref state, ticket);
            return ticket;
        }

        /// <summary>Ends a call. Release: a closing thread sees all that the call did.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        internal void Leave() => Volatile.Write(ref state, state & ~Mask);

        /// <summary>Ends a call that gave something out, and gives its ticket.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        internal uint LeaveOut()
        {
            uint ticket = state & ~Mask | Out;
            Volatile.Write(ref state, ticket);
            return ticket;
        }

        /// <summary>Whether this is what is out.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        internal bool Holds(uint ticket) => state == ticket;

        /// <summary>What is out stays out, by another ticket.</summary>
        internal uint Renew()
        {
            uint ticket = unchecked(state + Mask + 1);
            Volatile.Write(ref state, ticket);
            return ticket;
        }

        /// <summary>The ticket of what is out.</summary>
        internal uint Ticket => state;

        /// <summary>Ends what is out.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        internal void End(uint ticket) => Volatile.Write(ref state, unchecked(ticket - Out + Mask + 1));

        /// <summary>Ends what is out, if something is: it was given up.</summary>
        internal void EndAny()
        {
            if (IsOut)
            {
                End(state);
            }
        }

        /// <summary>Whether calls are kept out, because the handle was closed or is dead.</summary>
        internal bool IsShut
        {
            [MethodImpl(MethodImplOptions.AggressiveInlining)]
            get => Volatile.Read(ref shut) != 0;
        }

        /// <summary>Whether the handle was closed.</summary>
        internal bool IsClosed => (Volatile.Read(ref shut) & Closed) != 0;

        /// <summary>Whether the handle died.</summary>
        internal bool IsDead => (Volatile.Read(ref shut) & Dead) != 0;

        /// <summary>Marks the handle dead.</summary>
        internal void Die() => Set(Dead);

        /// <summary>Keeps new calls out. One in progress goes on until it is not <see cref="IsCalling"/>.</summary>
        internal void Close()
        {
            Set(Closed);
            Interlocked.MemoryBarrierProcessWide();
        }

        private void Set(int bit)
        {
            int seen;
            do
            {
                seen = Volatile.Read(ref shut);
            }
            while (Interlocked.CompareExchange(ref shut, seen | bit, seen) != seen);
        }
    }
}
