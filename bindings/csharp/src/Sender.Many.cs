using System;
using System.Threading;

namespace Ramway
{
    public sealed unsafe partial class Sender
    {
        /// <summary>
        /// Sends messages and publishes them together, or earlier where the ring fills up: then it waits for room. Says how many
        /// were sent: fewer than all if it could not go on after at least one; what the reason was, the next call throws, which
        /// has nothing sent before.
        /// </summary>
        /// <exception cref="RamwayException">As for Send, if none was sent.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled, and none was sent.</exception>
        public int SendBatch(uint typeId, ReadOnlySpan<ReadOnlyMemory<byte>> messages, TimeSpan? timeout = null,
            CancellationToken cancellationToken = default) => SendBatch(typeId, 0, messages, timeout, cancellationToken);

        /// <summary>The same with a tag, the same for all.</summary>
        /// <exception cref="RamwayException">As above.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled, and none was sent.</exception>
        public int SendBatch(uint typeId, ulong tag, ReadOnlySpan<ReadOnlyMemory<byte>> messages, TimeSpan? timeout = null,
            CancellationToken cancellationToken = default)
        {
            Patience.Check(timeout);
            Exception? e = null;
            int sent = 0;
            bool open = Enter();
            try
            {
                Patience patience = Patience.Endless;
                bool known = false;
                if (!open && messages.IsEmpty)
                {
                    e = Refused();
                }
                try
                {
                    for (; sent < messages.Length; sent++)
                    {
                        ReadOnlySpan<byte> data = messages[sent].Span;
                        if (gate.IsShut || typeId >= Layout.TypeIdReserved || !Fits((uint)data.Length))
                        {
                            if (!known)
                            {
                                patience = Patience.Of(timeout, cancellationToken);
                                known = true;
                            }
                            e = MakeRoom(typeId, data.Length, true, patience);
                            if (e != null)
                            {
                                break;
                            }
                        }
                        data.CopyTo(new Span<byte>(Payload, data.Length));
                        Commit((uint)data.Length, typeId, tag);
                    }
                }
                catch when (sent > 0)
                {
                    // A message's own memory threw, and will again at the next call, for which this is left.
                }
                // Closed meanwhile: the close flushes once this call has left, and may be unmapping already if it came first.
                if (!gate.IsShut)
                {
                    FlushCommitted();
                }
            }
            finally
            {
                gate.Leave();
            }
            return e == null || sent > 0 ? sent : throw e;
        }

        /// <summary>
        /// Sends one message gathered from several pieces. Waits for room no longer than the time-out (null: without a limit) and
        /// until the token is cancelled.
        /// </summary>
        /// <exception cref="RamwayException">As for Send, and TimedOut.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public void SendVectored(uint typeId, ReadOnlySpan<ReadOnlyMemory<byte>> parts, TimeSpan? timeout = null,
            CancellationToken cancellationToken = default) => SendVectored(typeId, 0, parts, timeout, cancellationToken);

        /// <summary>The same with a tag.</summary>
        /// <exception cref="RamwayException">As for Send, and TimedOut.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public void SendVectored(uint typeId, ulong tag, ReadOnlySpan<ReadOnlyMemory<byte>> parts, TimeSpan? timeout = null,
            CancellationToken cancellationToken = default)
        {
            Patience.Check(timeout);
            long length = 0;
            foreach (ReadOnlyMemory<byte> part in parts)
            {
                length += part.Length;
            }
            if (length > int.MaxValue)
            {
                throw Fail(ErrorKind.TooLarge, "a message of " + length + " bytes can never fit into any ring");
            }
            if (!Enter() || typeId >= Layout.TypeIdReserved || !Fits((uint)length))
            {
                MakeRoomOrThrow(typeId, (int)length, timeout, cancellationToken);
            }
            try
            {
                var to = new Span<byte>(Payload, (int)length);
                foreach (ReadOnlyMemory<byte> part in parts)
                {
                    part.Span.CopyTo(to);
                    to = to.Slice(part.Length);
                }
                Commit((uint)length, typeId, tag);
                FlushCommitted();
            }
            finally
            {
                // A piece's own memory may throw.
                gate.Leave();
            }
        }
    }
}
