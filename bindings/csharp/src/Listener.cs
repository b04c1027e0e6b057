using System;
using System.Threading;
using System.Threading.Tasks;

namespace Ramway
{
    /// <summary>Accepts connectors, each with a bus of its own memory.</summary>
    public sealed partial class Listener : IDisposable
    {
        /// <summary>Starts to listen at a name in the Ramway directory, or at a path.</summary>
        public static Listener Bind(string name, ListenerOptions? options = null) => throw new NotImplementedException();

        /// <summary>The next bus, waiting for it.</summary>
        public Bus Accept(TimeSpan? timeout = null, CancellationToken cancellationToken = default) => throw new NotImplementedException();

        /// <summary>The next bus unless there is none now: then false.</summary>
        public bool TryAccept(out Bus? bus) => throw new NotImplementedException();

        /// <summary>The next bus, waiting for it without holding a thread.</summary>
        public Task<Bus> AcceptAsync(CancellationToken cancellationToken = default) => throw new NotImplementedException();

        /// <summary>The socket's path, which connectors can be given in place of the name.</summary>
        public string Path => throw new NotImplementedException();

        /// <summary>Stops listening and removes the name.</summary>
        public void Dispose() => throw new NotImplementedException();
    }
}
