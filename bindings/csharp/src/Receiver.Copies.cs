using System;
using System.Buffers;
using System.Threading;

namespace Ramway
{
    // Receiving by copies, by memory that lives longer than a call, and in a loop.
    public sealed unsafe partial class Receiver
    {
        /// <summary>
        /// Copies the next message and releases it, and gives its length. It looks at none of the bytes in the ring but to copy
        /// them: the one way to receive that a peer cannot disturb by rewriting what it sent. Waits, and fails, like <see
        /// cref="Recv(TimeSpan?, CancellationToken)"/>; a message that is longer than the buffer (TooLarge, info tells)
        /// stays where it is.
        /// </summary>
        /// <exception cref="RamwayException">As for Recv, and TooLarge.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public int RecvInto(Span<byte> buffer, out MessageInfo info, TimeSpan? timeout = null,
            CancellationToken cancellationToken = default)
        {
            Patience.Check(timeout);
            if (!Enter() || head == tail && !Poll() || !Parse(ref frames[0]))
            {
                info = default;
                NextOrThrow(timeout, cancellationToken);
            }
            Take(buffer, out info);
            return info.Length;
        }

        /// <summary>The same without waiting; false if there is no message now.</summary>
        /// <exception cref="RamwayException">As for Recv, and TooLarge.</exception>
        public bool TryRecvInto(Span<byte> buffer, out MessageInfo info)
        {
            if (!Enter() || head == tail && !Look() || !Parse(ref frames[0]))
            {
                info = default;
                if (!TryNext())
                {
                    return false;
                }
            }
            Take(buffer, out info);
            return true;
        }

        /// <summary>The same for a message of any length: the writer is asked for room for the whole of it at once. If the
        /// writer throws, the message is still there.</summary>
        /// <exception cref="RamwayException">As for Recv.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public MessageInfo RecvAppend(IBufferWriter<byte> writer, TimeSpan? timeout = null,
            CancellationToken cancellationToken = default)
        {
            if (writer == null)
            {
                throw new ArgumentNullException(nameof(writer));
            }
            // Outside of the gate, because the writer is somebody else's code.
            using Message message = Recv(timeout, cancellationToken);
            try
            {
                ReadOnlySpan<byte> bytes = message.Data;
                if (bytes.Length > 0)
                {
                    bytes.CopyTo(writer.GetSpan(bytes.Length));
                    writer.Advance(bytes.Length);
                }
                return message.Info;
            }
            catch
            {
                message.PutBack();
                throw;
            }
        }

        /// <summary>Copies the frame that was taken, releases it and leaves the gate.</summary>
        private void Take(Span<byte> buffer, out MessageInfo info)
        {
            ref readonly Frame frame = ref frames[0];
            info = new MessageInfo(frame.TypeId, frame.Tag, frame.Length);
            if (frame.Length > buffer.Length)
            {
                head = released;
                RamwayException e = Fail(ErrorKind.TooLarge, "a message of " + frame.Length + " bytes does not fit into a " +
                    "buffer of " + buffer.Length + "; it is still there");
                gate.Leave();
                throw e;
            }
            new ReadOnlySpan<byte>(frame.Data, frame.Length).CopyTo(buffer);
            GiveBack();
            gate.Leave();
        }

        /// <summary>
        /// Receives a message as memory that can be kept, passed to other threads and awaited with; until its Dispose nothing
        /// else can be received. Allocates the object. Waits, and fails, like <see cref="Recv(TimeSpan?, CancellationToken)"/>.
        /// </summary>
        /// <exception cref="RamwayException">As for Recv.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public OwnedMessage RecvMemory(TimeSpan? timeout = null, CancellationToken cancellationToken = default) =>
            new OwnedMessage(Recv(timeout, cancellationToken).ToLease());

        /// <summary>
        /// The messages one after another, each released after the loop's body (or earlier, by the body). The loop ends when the
        /// sender has closed, or the ring's name was removed under it. It throws as <see cref="Recv()"/> does otherwise.
        /// </summary>
        public MessageSequence ReadAll(CancellationToken cancellationToken = default) =>
            new MessageSequence(this, null, cancellationToken);

        /// <summary>
        /// The same, and waits for each message no longer than the time-out (null: without a limit): then the loop ends by an
        /// exception of the kind TimedOut.
        /// </summary>
        public MessageSequence ReadAll(TimeSpan? timeout, CancellationToken cancellationToken = default)
        {
            Patience.Check(timeout);
            return new MessageSequence(this, timeout, cancellationToken);
        }

        /// <summary>What <see cref="ReadAll(CancellationToken)"/> gives, for foreach.</summary>
        public readonly struct MessageSequence
        {
            private readonly Receiver receiver;
            private readonly TimeSpan? timeout;
            private readonly CancellationToken token;

            internal MessageSequence(Receiver receiver, TimeSpan? timeout, CancellationToken token)
            {
                this.receiver = receiver;
                this.timeout = timeout;
                this.token = token;
            }

            /// <summary>For foreach.</summary>
            public Enumerator GetEnumerator() => new Enumerator(receiver, timeout, token);

            /// <summary>For foreach.</summary>
            public ref struct Enumerator
            {
                private readonly Receiver receiver;
                private readonly TimeSpan? timeout;
                private readonly CancellationToken token;

                internal Enumerator(Receiver receiver, TimeSpan? timeout, CancellationToken token)
                {
                    this.receiver = receiver;
                    this.timeout = timeout;
                    this.token = token;
                    Current = default;
                }

                /// <summary>The message.</summary>
                public Message Current { get; private set; }

                /// <summary>Releases the message and waits for the next one.</summary>
                public bool MoveNext()
                {
                    Current.Dispose();
                    Current = default;
                    try
                    {
                        Current = receiver.Recv(timeout, token);
                        return true;
                    }
                    catch (RamwayException e) when (e.Kind == ErrorKind.Closed)
                    {
                        return false;
                    }
                }

                /// <summary>Releases the message.</summary>
                public void Dispose() => Current.Dispose();
            }
        }
    }
}
