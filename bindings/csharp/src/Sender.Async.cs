using System;
using System.Threading;
using System.Threading.Tasks;

namespace Ramway
{
    public sealed partial class Sender
    {
        /// <summary>
        /// Sends a message, and waits for room without holding a thread. If there is room it is sent when this returns, and
        /// nothing is allocated. The token is looked at only if there is none.
        /// </summary>
        /// <remarks>
        /// Until it is over, this is a call in progress: no other may be made, but for Dispose, which ends it with Detached.
        /// </remarks>
        /// <exception cref="RamwayException">As for Send.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public ValueTask SendAsync(uint typeId, ReadOnlyMemory<byte> data, CancellationToken cancellationToken = default) =>
            SendAsync(typeId, 0, data, cancellationToken);

        /// <summary>The same with a tag.</summary>
        /// <exception cref="RamwayException">As for Send.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public ValueTask SendAsync(uint typeId, ulong tag, ReadOnlyMemory<byte> data,
            CancellationToken cancellationToken = default)
        {
            ReadOnlySpan<byte> bytes = data.Span;
            if (gate.IsTaken)
            {
                return new ValueTask(Task.FromException(Taken()));
            }
            if (Enter() && typeId < Layout.TypeIdReserved && Fits((uint)bytes.Length))
            {
                Put(typeId, bytes, tag);
                return default;
            }
            gate.Leave();
            return Later(this, typeId, data, tag, cancellationToken);

            static async ValueTask Later(Sender sender, uint typeId, ReadOnlyMemory<byte> data, ulong tag, CancellationToken token)
            {
                while (!sender.TrySend(typeId, tag, data.Span))
                {
                    if (!await sender.WaitToWriteAsync(data.Length, token).ConfigureAwait(false))
                    {
                        throw sender.Fail(ErrorKind.Closed);
                    }
                }
            }
        }

        /// <summary>
        /// Waits without holding a thread until a message of so many bytes can be sent: true; false if the receiver has closed and
        /// there is no room. What was committed unflushed is flushed if there is none.
        /// </summary>
        /// <exception cref="RamwayException">As for Send, but for Closed.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public ValueTask<bool> WaitToWriteAsync(int length, CancellationToken cancellationToken = default)
        {
            if (gate.IsTaken)
            {
                return Failed(Taken());
            }
            if (Enter() && Fits((uint)length))
            {
                gate.Leave();
                return new ValueTask<bool>(true);
            }
            Exception? e;
            try
            {
                e = MakeRoom(0, length, false, Patience.Endless);
                if (e == NotNow)
                {
                    return BeginWait(cancellationToken);
                }
            }
            catch
            {
                gate.Leave();
                throw;
            }
            gate.Leave();
            if (e is RamwayException end && end.Kind == ErrorKind.Closed)
            {
                return new ValueTask<bool>(false);
            }
            return e == null ? new ValueTask<bool>(true) : Failed(e);
        }

        private protected override bool Conclude(ref Exception? e)
        {
            e = Ending(e);
            if (e is RamwayException end && end.Kind == ErrorKind.Closed)
            {
                e = null;
                return false;
            }
            return e == null;
        }
    }
}
