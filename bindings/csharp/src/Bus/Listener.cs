using System;
using System.Collections.Generic;
using System.Diagnostics.CodeAnalysis;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Tasks;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>Accepts connectors, each with a <see cref="Bus"/> of its own memory. For any number of threads.</summary>
    /// <remarks>
    /// A connector that is silent, breaks the handshake or is another user's is refused and does not disturb the others: up to 64
    /// handshakes run side by side, on one thread of the listener's, and one more connector ends the one that has been silent the
    /// longest. They begin while a call asks for a bus; until then connectors wait. It listens until it is disposed of or the
    /// process ends.
    /// <code>
    /// using var listener = Listener.Bind("echo");
    /// while (true)
    /// {
    ///     Bus bus = await listener.AcceptAsync(cancellationToken);
    ///     ...
    /// }
    /// </code>
    /// </remarks>
    public sealed class Listener : IDisposable
    {
        private readonly Place place;
        private readonly SegmentLink link;
        private readonly Descriptor socket;
        private readonly ListenerThread thread;
        private int disposed;

        private Listener(Place place, SegmentLink link, Descriptor socket, ListenerThread thread)
        {
            this.place = place;
            this.link = link;
            this.socket = socket;
            this.thread = thread;
        }

        /// <summary>The socket's path, which connectors can be given in place of the name.</summary>
        public string Path => place.SocketPath;

        /// <summary>How many connectors have been refused or have given up so far.</summary>
        public long Refused => thread.Refused;

        /// <summary>Why the last one was, for logs; null if there was none.</summary>
        public RamwayException? LastRefusal => thread.LastRefusal;

        /// <summary>
        /// Starts to listen at a name in RAMWAY_DIR, or at a path (with a '/'). The name is gone when the listener is disposed of;
        /// what a killed one left is taken over.
        /// </summary>
        /// <param name="name">The name or path.</param>
        /// <param name="options">What connectors get; null: the defaults.</param>
        /// <exception cref="RamwayException">
        /// <see cref="ErrorKind.AlreadyExists"/> if a live listener has the name or its socket's path, or another program listens
        /// there, or something that is no socket is there (it stays as it is); <see
        /// cref="ErrorKind.InvalidArgument"/> for a bad name, capacity, alignment or time; <see
        /// cref="ErrorKind.PermissionDenied"/>, <see cref="ErrorKind.NoSpace"/>, <see cref="ErrorKind.Unsupported"/>, <see
        /// cref="ErrorKind.Os"/>.
        /// </exception>
        public static Listener Bind(string name, ListenOptions? options = null) =>
            BindFor(int.MaxValue, name, options ?? new ListenOptions());

        /// <summary>The same for this many peers at most: no more connectors are told that they are welcome.</summary>
        internal static Listener BindFor(int peers, string name, ListenOptions options) =>
            BindFor(new Permits(peers), name, options, () => options.Plan(name));

        /// <summary>The same with a plan of its own, which is made first.</summary>
        internal static Listener BindFor(Permits permits, string name, ListenOptions options, Func<ListenPlan> plan)
        {
            if (name == null)
            {
                throw new ArgumentNullException(nameof(name));
            }
            return Errors.During("listening at", name, () => BindOnce(name, options, plan(), permits));
        }

        private static Listener BindOnce(string name, ListenOptions options, ListenPlan plan, Permits permits)
        {
            Place at = Place.Resolve(name, true);
            SegmentLink? link = null;
            Descriptor? socket = null;
            try
            {
                // What is too long is so before anything is made.
                at.SocketAddress();
                link = Named.LockListener(at.Segment);
                // The lock says that the place is ours.
                at.Clear();
                socket = at.Listen(options.SocketMode, options.Backlog);
                return new Listener(at, link, socket, new ListenerThread(plan, options, socket, permits, at));
            }
            catch
            {
                if (socket != null)
                {
                    at.ClearOwn();
                    socket.Dispose();
                }
                link?.Close();
                at.Dispose();
                throw;
            }
        }

        /// <summary>The next bus, for which it blocks.</summary>
        /// <param name="timeout">How long to wait; null: forever.</param>
        /// <param name="cancellationToken">Ends the wait at once.</param>
        /// <exception cref="RamwayException">
        /// <see cref="ErrorKind.TimedOut"/>; <see cref="ErrorKind.Detached"/> once the listener is disposed of; <see
        /// cref="ErrorKind.NoSpace"/> if there is no memory for a bus and <see cref="ErrorKind.Os"/> if there are no descriptors
        /// left (the connectors were told; the listener goes on at the next call, and accepts more after 100 ms). What
        /// connectors do wrong is no error here: see <see cref="LastRefusal"/>.
        /// </exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public Bus Accept(TimeSpan? timeout = null, CancellationToken cancellationToken = default)
        {
            WaitLimit.Check(timeout, "timeout");
            return thread.Queue.Ask(cancellationToken).Wait(WaitLimit.Of(timeout));
        }

        /// <summary>The next bus, for which no thread of the pool waits. Errors as those of <see cref="Accept"/>.</summary>
        /// <param name="cancellationToken">Ends the wait at once.</param>
        public Task<Bus> AcceptAsync(CancellationToken cancellationToken = default) =>
            thread.Queue.Ask(cancellationToken).Task;

        /// <summary>One bus after another, until the token is cancelled or the listener is disposed of.</summary>
        /// <param name="cancellationToken">Ends it, by an <see cref="OperationCanceledException"/>.</param>
        /// <exception cref="RamwayException">As <see cref="Accept"/>, but for <see cref="ErrorKind.Detached"/>, which ends
        /// the loop.</exception>
        public async IAsyncEnumerable<Bus> AcceptAllAsync([EnumeratorCancellation] CancellationToken cancellationToken = default)
        {
            while (true)
            {
                Bus bus;
                try
                {
                    bus = await AcceptAsync(cancellationToken).ConfigureAwait(false);
                }
                catch (RamwayException e) when (e.Kind == ErrorKind.Detached)
                {
                    yield break;
                }
                yield return bus;
            }
        }

        /// <summary>
        /// A bus that is there already; it never waits. A call that finds none begins the handshakes with those who have connected,
        /// and a later one has their buses. Errors as those of <see cref="Accept"/>.
        /// </summary>
        /// <param name="bus">The bus.</param>
        public bool TryAccept([NotNullWhen(true)] out Bus? bus) => thread.Queue.TryTake(out bus);

        /// <summary>
        /// Stops listening and removes the name. Calls that wait for a bus end with <see cref="ErrorKind.Detached"/>, and
        /// connectors that were not yet served wait for the next listener; buses live on. From any thread, and more than once.
        /// </summary>
        public void Dispose()
        {
            if (Interlocked.Exchange(ref disposed, 1) != 0)
            {
                return;
            }
            // While our lock says that this name is ours. A connector that comes in between is told by the hang-up.
            place.ClearOwn();
            thread.Close();
            socket.Dispose();
            link.Close();
            place.Dispose();
        }
    }
}
