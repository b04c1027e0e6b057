using System;
using System.Threading;

namespace Ramway
{
    public unsafe partial class Receiver
    {
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
            WaitLimit.Check(timeout);
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
            public Enumerator GetEnumerator() => new Enumerator(this);

            /// <summary>For foreach.</summary>
            public ref struct Enumerator
            {
                private readonly MessageSequence all;

                internal Enumerator(MessageSequence all)
                {
                    this.all = all;
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
                        Current = all.receiver.Recv(all.timeout, all.token);
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
