using System;
using System.Collections.Generic;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Tasks;

namespace Ramway
{
    public sealed partial class Receiver
    {
        /// <summary>
        /// Waits without holding a thread: true when a message is there, false when the sender has closed and all that it sent
        /// was received. The token is looked at only if there is nothing now.
        /// </summary>
        /// <remarks>
        /// Until it is over, this is a call in progress: no other may be made, but for Dispose, which ends it with Detached. It
        /// allocates nothing but what waiting with another token than the last time takes.
        /// </remarks>
        /// <exception cref="RamwayException">As for <see cref="Recv()"/>, but for Closed.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public ValueTask<bool> WaitToReadAsync(CancellationToken cancellationToken = default)
        {
            if (gate.IsTaken)
            {
                return Failed(Taken());
            }
            if (Enter() && (head != tail || Poll()))
            {
                gate.Leave();
                return new ValueTask<bool>(true);
            }
            return WaitSlow(cancellationToken);
        }

        private ValueTask<bool> WaitSlow(CancellationToken token)
        {
            Exception? e;
            bool over = false;
            if (gate.IsShut)
            {
                e = Refused();
            }
            else if (!(over = Ready(out e)) && e == null)
            {
                return Begin(token);
            }
            gate.Leave();
            return e == null || dead == ErrorKind.Closed && !gate.IsClosed ? new ValueTask<bool>(over) : Failed(e);
        }

        private ValueTask<bool> Begin(CancellationToken token)
        {
            try
            {
                return BeginWait(token);
            }
            catch
            {
                gate.Leave();
                throw;
            }
        }

        private protected override bool Conclude(ref Exception? e)
        {
            if (e == null)
            {
                return true;
            }
            e = Ending(e);
            if (e is RamwayException end && end.Kind == ErrorKind.Closed)
            {
                e = null;
            }
            return false;
        }

        /// <summary>
        /// Gives the next message, and waits for it without holding a thread. Nothing is allocated if it is there. The message may
        /// be used on any thread, and until its Dispose nothing else can be received.
        /// </summary>
        /// <exception cref="RamwayException">As for <see cref="Recv()"/>.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public ValueTask<MessageLease> RecvAsync(CancellationToken cancellationToken = default)
        {
            if (gate.IsTaken)
            {
                return new ValueTask<MessageLease>(Task.FromException<MessageLease>(Taken()));
            }
            uint ticket = EnterOut();
            if (!gate.IsShut && (head != tail || Poll()) && Parse(ref frames[0]))
            {
                return new ValueTask<MessageLease>(new MessageLease(this, ticket));
            }
            LeaveEmpty();
            return Later(this, cancellationToken);

            static async ValueTask<MessageLease> Later(Receiver receiver, CancellationToken token)
            {
                MessageLease lease;
                while (!receiver.TryLease(out lease))
                {
                    if (!await receiver.WaitToReadAsync(token).ConfigureAwait(false))
                    {
                        throw receiver.Fail(ErrorKind.Closed);
                    }
                }
                return lease;
            }
        }

        /// <summary>
        /// The messages one after another, each released when the next one is asked for (or earlier, by the loop's body). The loop
        /// ends when the sender has closed, or the ring's name was removed under it. Nothing is allocated for a message that is
        /// there.
        /// </summary>
        /// <remarks>
        /// <code>
        /// await foreach (MessageLease message in receiver.ReadAllAsync(token))
        /// {
        ///     await stream.WriteAsync(message.Memory, token);
        /// }
        /// </code>
        /// </remarks>
        /// <exception cref="RamwayException">As for <see cref="Recv()"/>, but for Closed.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled, and there was nothing to receive.</exception>
        public async IAsyncEnumerable<MessageLease> ReadAllAsync(
            [EnumeratorCancellation] CancellationToken cancellationToken = default)
        {
            for (;;)
            {
                while (TryLease(out MessageLease lease))
                {
                    try
                    {
                        yield return lease;
                    }
                    finally
                    {
                        lease.Dispose();
                    }
                }
                if (!await WaitToReadAsync(cancellationToken).ConfigureAwait(false))
                {
                    yield break;
                }
            }
        }

        /// <summary>A receive that leaves it to the wait that follows to find out how the ring has ended.</summary>
        private bool TryLease(out MessageLease lease)
        {
            uint ticket = EnterOut();
            if (!gate.IsShut && (head != tail || Look()) && Parse(ref frames[0]))
            {
                lease = new MessageLease(this, ticket);
                return true;
            }
            lease = default;
            RamwayException? e = !gate.IsShut && head != tail ? Corrupt() : null;
            LeaveEmpty();
            return e == null ? false : throw e;
        }
    }
}
