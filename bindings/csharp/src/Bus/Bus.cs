using System;
using System.Threading;
using System.Threading.Tasks;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>
    /// A connection to one process of this machine: two rings in sealed memory, one for each direction, and a socket whose hang-up
    /// tells that the peer is gone. A <see cref="Listener"/> accepts them, <see cref="Connect"/> makes them.
    /// </summary>
    /// <remarks>
    /// <para>Whatever the peer writes into the shared memory, at any time, this process neither crashes nor reads outside of it
    /// (<see cref="ErrorKind.Corrupt"/>, at worst), as far as the copying calls are used where the peer is not trusted: see <see
    /// cref="Ramway.Receiver.RecvInto"/>.</para>
    /// <para>One thread may send while another receives. After the last message a receiver gets <see cref="ErrorKind.Closed"/> if
    /// the peer closed and <see cref="ErrorKind.PeerDead"/> if its process died; a blocked call learns it within 200 ms. Both are
    /// final.</para>
    /// <code>
    /// using var bus = Bus.Connect("echo");
    /// bus.Sender.Send(7, Encoding.UTF8.GetBytes("hello"));
    /// using var reply = bus.Receiver.Recv();
    /// </code>
    /// </remarks>
    public sealed class Bus : IDisposable
    {
        private readonly BusEnd end;
        private readonly Sender? sender;
        private readonly Receiver? receiver;

        internal Bus(BusEnd end, Sender? sender, Receiver? receiver)
        {
            this.end = end;
            this.sender = sender;
            this.receiver = receiver;
        }

        /// <summary>Whether there is a ring to the peer: the listener may have left it out.</summary>
        public bool HasSender => sender != null;

        /// <summary>Whether there is a ring from the peer: the listener may have left it out.</summary>
        public bool HasReceiver => receiver != null;

        /// <summary>The sending half, with all of its calls. The peer sees a hang-up when both halves are closed.</summary>
        /// <exception cref="RamwayException"><see cref="ErrorKind.Unsupported"/> if <see cref="HasSender"/> is false.</exception>
        public Sender Sender => sender ?? throw Missing("receive-only");

        /// <summary>The receiving half, with all of its calls.</summary>
        /// <exception cref="RamwayException"><see cref="ErrorKind.Unsupported"/> if <see cref="HasReceiver"/> is
        /// false.</exception>
        public Receiver Receiver => receiver ?? throw Missing("send-only");

        /// <summary>The user that the peer acted as when the connection was made, as the kernel recorded it.</summary>
        public uint PeerUid => end.Peer.Uid;

        /// <summary>
        /// The peer's process when the connection was made; 0 if it has no number in our PID namespace. It says who asked, and
        /// nothing should be decided by it: numbers are used again.
        /// </summary>
        public int PeerPid => end.Peer.Pid;

        /// <summary>Whether the peer still holds its end of the bus. One system call, from any thread; false once this end is
        /// closed.</summary>
        public bool PeerAlive => !end.HungUp();

        /// <summary>
        /// Connects to the listener of that name (a name in RAMWAY_DIR, or a path with a '/'), waiting for one that is not there
        /// yet or does not accept. It blocks until the listener has served us.
        /// </summary>
        /// <param name="name">The listener's name or path.</param>
        /// <param name="options">How to connect; null: the defaults.</param>
        /// <param name="cancellationToken">Ends it at once.</param>
        /// <exception cref="RamwayException">
        /// <see cref="ErrorKind.NotFound"/> if there was no listener until the deadline, <see cref="ErrorKind.TimedOut"/> if there
        /// was one but it did not answer, <see cref="ErrorKind.PermissionDenied"/> if either side does not deal with the other's
        /// user or the socket cannot be reached, <see cref="ErrorKind.AbiMismatch"/> if the two sides speak different versions,
        /// <see cref="ErrorKind.Corrupt"/> or <see cref="ErrorKind.PeerDead"/> if the listener breaks the handshake, <see
        /// cref="ErrorKind.InvalidArgument"/> for a bad name or option, or what the listener gave as its reason (<see
        /// cref="ErrorKind.NoSpace"/> for example).
        /// </exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public static Bus Connect(string name, ConnectOptions? options = null, CancellationToken cancellationToken = default) =>
            new Connector(name, options ?? new ConnectOptions()).Run(cancellationToken);

        /// <summary><see cref="Connect"/> on a thread of its own, so that no thread of the pool is blocked.</summary>
        /// <param name="name">The listener's name or path.</param>
        /// <param name="options">How to connect; null: the defaults.</param>
        /// <param name="cancellationToken">Ends it at once.</param>
        public static Task<Bus> ConnectAsync(string name, ConnectOptions? options = null,
            CancellationToken cancellationToken = default)
        {
            var connector = new Connector(name, options ?? new ConnectOptions());
            return Task.Factory.StartNew(() => connector.Run(cancellationToken), cancellationToken,
                TaskCreationOptions.LongRunning | TaskCreationOptions.DenyChildAttach, TaskScheduler.Default);
        }

        /// <summary>
        /// Listens, takes one peer, and removes the name again. At most one connector is ever told that it is welcome, so that
        /// no other takes itself for connected.
        /// </summary>
        /// <param name="name">A name in RAMWAY_DIR, or a path (with a '/').</param>
        /// <param name="options">What the peer gets; null: the defaults.</param>
        /// <param name="timeout">How long to wait for it; null: forever.</param>
        /// <param name="cancellationToken">Ends it at once.</param>
        /// <exception cref="RamwayException">Those of <see cref="Ramway.Listener.Bind"/> and <see
        /// cref="Ramway.Listener.Accept"/>.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public static Bus Listen(string name, ListenOptions? options = null, TimeSpan? timeout = null,
            CancellationToken cancellationToken = default)
        {
            using Listener listener = Listener.BindFor(1, name, options ?? new ListenOptions());
            return listener.Accept(timeout, cancellationToken);
        }

        /// <summary>
        /// Closes both halves; what was sent before is delivered. From any thread, and more than once: calls of other threads that
        /// wait end with <see cref="ErrorKind.Detached"/>.
        /// </summary>
        public void Dispose()
        {
            sender?.Dispose();
            receiver?.Dispose();
        }

        private static RamwayException Missing(string ways) => Errors.Fail(ErrorKind.Unsupported,
            $"this bus is {ways}: the listener gave the other direction a capacity of 0");
    }
}
