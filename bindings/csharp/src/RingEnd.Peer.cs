using System;
using System.Threading;
using System.Threading.Tasks;
using Ramway.Sys;

namespace Ramway
{
    // Waiting until there is somebody at the other end.
    public abstract unsafe partial class RingEnd
    {
        /// <summary>An asynchronous wait is one for a peer.</summary>
        private bool seeking;
        /// <summary>The epoch of the peer that was found last.</summary>
        private uint found;
        /// <summary>
        /// The last epoch of the peer's that is known to be over. Its successor takes the role's lock first and an epoch of its own
        /// next: in between it must not pass for the one that closed or died.
        /// </summary>
        private uint ended;

        /// <summary>
        /// Waits until the other role is attached, not closed, and its process lives, and gives its epoch, see <see
        /// cref="PeerEpoch"/>. Returns at once if that is so now. After PeerDead, or Closed, on a named ring this waits for the
        /// successor. What was committed unflushed is flushed first.
        /// </summary>
        /// <param name="timeout">How long to wait; null: forever.</param>
        /// <param name="cancellationToken">Ends the wait at once.</param>
        /// <exception cref="RamwayException">
        /// TimedOut; on a bus or pair, where an end is final, Closed or PeerDead if the peer is gone; Closed if the ring's name was
        /// removed; Detached once this handle is closed; Busy, Corrupt.
        /// </exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public uint WaitForPeer(TimeSpan? timeout = null, CancellationToken cancellationToken = default)
        {
            Patience.Check(timeout);
            bool open = Enter();
            Exception? e;
            uint epoch = 0;
            try
            {
                e = open ? null : Refused();
                if (e == null)
                {
                    BeforeSeeking();
                    epoch = FindPeer(out e);
                }
                if (e == null && epoch == 0)
                {
                    epoch = Seek(Patience.Of(timeout, cancellationToken), out e);
                }
            }
            finally
            {
                gate.Leave();
            }
            return e == null ? epoch : throw e;
        }

        /// <summary>What is to be done before a wait for a peer.</summary>
        private protected virtual void BeforeSeeking()
        {
        }

        /// <summary>The living peer's epoch; 0: none is there, or no one ever will be, with an error.</summary>
        private uint FindPeer(out Exception? e)
        {
            e = null;
            ILink link = at!.Link;
            uint epoch = Volatile.Read(ref peer->Epoch);
            bool closed = (Volatile.Read(ref peer->Flags) & Layout.RoleClosed) != 0;
            if (closed)
            {
                ended = epoch;
            }
            else if (epoch != 0 && epoch != ended)
            {
                if (link.PeerAlive(role))
                {
                    found = epoch;
                    return epoch;
                }
                ended = epoch;
            }
            if (final && epoch != 0)
            {
                // A close comes before the hang-up: so it is looked for once more after that.
                closed = (Volatile.Read(ref peer->Flags) & Layout.RoleClosed) != 0;
                e = Fail(closed ? ErrorKind.Closed : ErrorKind.PeerDead);
            }
            else if (final && !link.PeerAlive(role))
            {
                e = Fail(ErrorKind.PeerDead);
            }
            else if (link.Vanished())
            {
                e = NameGone();
            }
            return 0;
        }

        /// <summary>Sleeps until a peer is found, in rounds: an attach wakes this role's word.</summary>
        private uint Seek(in Patience patience, out Exception? e)
        {
            wait.Watch(patience.Token);
            try
            {
                for (;;)
                {
                    long longest = Arm();
                    uint epoch = FindPeer(out e);
                    if (epoch != 0 || e != null)
                    {
                        return epoch;
                    }
                    e = CalledOff(patience);
                    if (e != null)
                    {
                        return 0;
                    }
                    Futex.Wait(&mine->Wait, 1, Math.Max(1, Math.Min(longest, patience.Left)));
                }
            }
            finally
            {
                Volatile.Write(ref mine->Wait, 0);
            }
        }
    }

    // No await in an unsafe context.
    public abstract partial class RingEnd
    {
        /// <summary><see cref="WaitForPeer"/> without holding a thread.</summary>
        /// <param name="cancellationToken">Ends the wait at once.</param>
        /// <remarks>Until it is over, this is a call in progress: no other may be made, but for Dispose.</remarks>
        /// <exception cref="RamwayException">As for WaitForPeer, but for TimedOut.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public ValueTask<uint> WaitForPeerAsync(CancellationToken cancellationToken = default)
        {
            if (gate.IsTaken)
            {
                return new ValueTask<uint>(Task.FromException<uint>(Taken()));
            }
            Exception? e = Enter() ? null : Refused();
            uint epoch = 0;
            try
            {
                if (e == null)
                {
                    BeforeSeeking();
                    epoch = FindPeer(out e);
                }
                if (e == null && epoch == 0)
                {
                    seeking = true;
                    return Later(this, BeginWait(cancellationToken));
                }
            }
            catch
            {
                seeking = false;
                gate.Leave();
                throw;
            }
            gate.Leave();
            return e == null ? new ValueTask<uint>(epoch) : new ValueTask<uint>(Task.FromException<uint>(e));

            static async ValueTask<uint> Later(RingEnd end, ValueTask<bool> wait)
            {
                await wait.ConfigureAwait(false);
                return end.found;
            }
        }
    }
}
