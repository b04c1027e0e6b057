using System.Threading;
using Ramway.Sys;

namespace Ramway
{
    // What a thread needs that sleeps for several ends at once (PumpWait). It is the one user of these ends, and none of them is
    // closed meanwhile: so no guard is entered here.
    public abstract unsafe partial class RingEnd
    {
        /// <summary>Whether a sleep is to be ordered by a membarrier, because wakers may leave out their fence.</summary>
        internal bool NeedsMembarrier => membarrierCapable;

        /// <summary>
        /// First step of a sleep: says that this side is about to sleep. To be followed by a membarrier, or a fence where that is not
        /// needed, and by <see cref="MayProceed"/>.
        /// </summary>
        internal void BeginSleep() => Armed = SayAsleep(out _);

        /// <summary>The membarrier did not work: wakers are told to fence again.</summary>
        internal void LoseMembarrier()
        {
            membarrierCapable = false;
            Volatile.Write(ref *ownFlags, Volatile.Read(ref *ownFlags) & ~Facts.RoleMembarrierCapable);
            FlagsChanged();
        }

        /// <summary>How long a sleep may last at most, in nanoseconds.</summary>
        internal long LongestSleep =>
            !membarrierCapable && WakersDoNotFence ? Facts.UnorderedIntervalNanos : Facts.PollIntervalNanos;

        /// <summary>
        /// Whether the peer has moved its position or has closed, since this side last acted on it: then there is no reason to sleep.
        /// </summary>
        internal bool MayProceed
        {
            get
            {
                ulong* word = Position(out ulong seen);
                return Volatile.Read(ref *word) != seen || (Volatile.Read(ref peer->Flags) & Facts.RoleClosed) != 0;
            }
        }

        /// <summary>
        /// Asks for the line that is read next once this side may proceed: beside polls for a request or a reply, where the other side
        /// waits for this one. In a stream it would take the line away from the sender that writes it.
        /// </summary>
        internal virtual void ReadAhead()
        {
        }

        /// <summary>The sleep is over.</summary>
        internal void EndSleep() => SayAwake();

        /// <summary>Ends a sleep of this end from any thread, where no other word can.</summary>
        internal void Interrupt() => wait.Interrupt();

        /// <summary>Gives the role up without a word to the peer: see <see cref="Sender.Abandon"/>.</summary>
        internal void GiveUp() => ShutDown(false, true);
    }
}
