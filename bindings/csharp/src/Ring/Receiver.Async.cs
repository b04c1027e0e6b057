using System;
using System.Collections.Generic;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Tasks;

namespace Ramway
{
    // No await in an unsafe context.
    public partial class Receiver
    {
        /// <summary>
        /// Waits without holding a thread: true when a message is there, false when the sender has closed and all that it sent
        /// was received. The token is checked only if there is nothing now.
        /// </summary>
        /// <remarks>
        /// Until it is over, this is a call in progress: no other may be made, but for Dispose, which ends it with Detached. It
        /// allocates nothing but what waiting with another token than the last time takes.
        /// </remarks>
        /// <exception cref="RamwayException">As for <see cref="Recv()"/>, but for Closed.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public ValueTask<bool> WaitToReadAsync(CancellationToken cancellationToken = default)
        {
            if (guard.IsTaken)
            {
                return Failed(Taken());
            }
            if (Enter() && (head != tail || Poll()))
            {
                guard.Leave();
                return new ValueTask<bool>(true);
            }
            return WaitLater(cancellationToken);
        }

        /// <summary>
        /// Gives the next message, and waits for it without holding a thread. Nothing is allocated if it is there. The message may
        /// be used on any thread, and until its Dispose nothing else can be received.
        /// </summary>
        /// <exception cref="RamwayException">As for <see cref="Recv()"/>.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public ValueTask<MessageLease> RecvAsync(CancellationToken cancellationToken = default)
        {
            if (guard.IsTaken)
            {
                return new ValueTask<MessageLease>(Task.FromException<MessageLease>(Taken()));
            }
            uint ticket = EnterOut();
            if (!guard.IsShut && HasFrame())
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
                    // There may be messages all the time that are overwritten before they are read: then no wait finds it cancelled.
                    token.ThrowIfCancellationRequested();
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
            do
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
                cancellationToken.ThrowIfCancellationRequested();
            }
            while (await WaitToReadAsync(cancellationToken).ConfigureAwait(false));
        }

        /// <summary>A receive that leaves it to the wait that follows to find out how the ring has ended.</summary>
        private bool TryLease(out MessageLease lease)
        {
            uint ticket = EnterOut();
            if (!guard.IsShut && HasFrameNow())
            {
                lease = new MessageLease(this, ticket);
                return true;
            }
            lease = default;
            Exception? e = !guard.IsShut && head != tail ? Untaken() : null;
            LeaveEmpty();
            return e == null ? false : throw e;
        }
    }
}
