using System;
using System.Threading;
using System.Threading.Tasks;

namespace Ramway
{
    // Waiting until a peer is attached.
    public abstract unsafe partial class RingEnd
    {
        /// <summary>
        /// What a call waits for: false, that <see cref="Ready"/> says so; true, a peer of another epoch than <see cref="gone"/>.
        /// </summary>
        private protected bool seeksPeer;
        /// <summary>The epoch of the peer that was found last.</summary>
        private protected uint found;

        /// <summary>
        /// Waits until the other role is attached, not closed, and its process lives, and gives its epoch, see <see
        /// cref="PeerEpoch"/>. Returns at once if that is so now. One that attaches during the call ends it, also if it is gone
        /// again: its messages may be there. After PeerDead, or Closed, on a named ring this waits for the successor. What was
        /// committed unflushed is flushed first.
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
            WaitLimit.Check(timeout);
            return Seek(timeout, cancellationToken);
        }

        private protected uint Seek(TimeSpan? timeout, CancellationToken token)
        {
            bool open = Enter();
            Exception? e;
            try
            {
                e = open ? SeekPeer() : Refused();
                if (e == NotNow)
                {
                    e = Sleep(WaitLimit.Of(timeout, token), 0);
                }
            }
            finally
            {
                LeaveSeek();
            }
            return e == null ? found : throw e;
        }

        /// <summary>Begins a wait for a peer, inside the guard. null: one is there.</summary>
        private protected virtual Exception? SeekPeer()
        {
            BeforeWait();
            seeksPeer = true;
            uint epoch = Volatile.Read(ref peer->Epoch);
            bool closed = (Volatile.Read(ref peer->Flags) & Facts.RoleClosed) != 0;
            // A peer that closed or died stays so under this epoch: its successor holds the lock before it raises the epoch, and the
            // lock alone would pass for the life of the predecessor.
            if (epoch != 0 && epoch != gone && !closed && at!.Link.PeerAlive(role))
            {
                found = Volatile.Read(ref peer->Epoch);
                return null;
            }
            gone = epoch;
            return Decide(true);
        }

        /// <summary>Whether a peer has attached since then.</summary>
        private protected virtual Exception? PeerFound()
        {
            uint epoch = Volatile.Read(ref peer->Epoch);
            if (epoch == gone)
            {
                return NotNow;
            }
            found = epoch;
            return null;
        }

        /// <summary>Why no peer can come any more.</summary>
        private protected virtual RamwayException? NoPeerCan() => final ? Ended(true) : at!.Link.Vanished() ? NameGone() : null;

        private void LeaveSeek()
        {
            seeksPeer = false;
            guard.Leave();
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
        public ValueTask<uint> WaitForPeerAsync(CancellationToken cancellationToken = default) => SeekAsync(cancellationToken);

        private protected ValueTask<uint> SeekAsync(CancellationToken cancellationToken)
        {
            if (guard.IsTaken)
            {
                return new ValueTask<uint>(Task.FromException<uint>(Taken()));
            }
            bool open = Enter();
            Exception? e;
            try
            {
                e = open ? SeekPeer() : Refused();
                if (e == NotNow)
                {
                    return Later(this, BeginWait(cancellationToken));
                }
            }
            catch
            {
                LeaveSeek();
                throw;
            }
            LeaveSeek();
            return e == null ? new ValueTask<uint>(found) : new ValueTask<uint>(Task.FromException<uint>(e));

            static async ValueTask<uint> Later(RingEnd end, ValueTask<bool> wait)
            {
                await wait.ConfigureAwait(false);
                return end.found;
            }
        }
    }
}
