using System;
using System.Collections;
using System.Collections.Generic;
using System.Diagnostics.CodeAnalysis;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Tasks;

namespace Ramway
{
    /// <summary>
    /// The elements of a call whose reply is a stream. One thread or task at a time uses it. Letting go of it, by <see cref="Dispose"/>,
    /// by leaving a loop over it, or as garbage, cancels the call.
    /// </summary>
    /// <remarks>
    /// <code>
    /// await foreach (RpcReply element in client.Stream(9, query))
    /// {
    ///     Show(element.Body.Span);
    /// }
    /// </code>
    /// </remarks>
    public sealed class RpcStream : IEnumerable<RpcReply>, IAsyncEnumerable<RpcReply>, IDisposable
    {
        private readonly RpcClient client;
        private readonly ClientCall call;

        internal RpcStream(RpcClient client, ClientCall call)
        {
            this.client = client;
            this.call = call;
        }

        /// <summary>A stream that is forgotten is cancelled when this is collected.</summary>
        ~RpcStream() => Cancel();

        /// <summary>Whether the server has completed the stream, and every element was taken.</summary>
        public bool IsComplete { get; private set; }

        /// <summary>What the server sent as metadata at the end of a stream that is complete; empty before.</summary>
        public ReadOnlyMemory<byte> Meta => IsComplete && call.Last != null ? call.Last.Meta : default;

        /// <summary>The next element, for which it blocks: true; false: the stream is complete.</summary>
        /// <param name="element">The element.</param>
        /// <param name="timeout">How long to wait; null: as long as the call takes. When it is over the stream goes on.</param>
        /// <param name="cancellationToken">Ends the wait; the stream goes on.</param>
        /// <exception cref="RpcException">The stream has ended without being complete, after the elements that came.</exception>
        /// <exception cref="RamwayException">TimedOut: nothing has come so far.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public bool Next([NotNullWhen(true)] out RpcReply? element, TimeSpan? timeout = null,
            CancellationToken cancellationToken = default)
        {
            WaitLimit.Check(timeout);
            if (Take(out element))
            {
                return true;
            }
            if (!client.AwaitFor(call, timeout, cancellationToken))
            {
                throw Errors.Fail(ErrorKind.TimedOut, "waiting for an element", null, "nothing has come so far; the stream goes on");
            }
            return TakeOrEnd(out element);
        }

        /// <summary>The next element if it is there, without waiting; false: it is not, or the stream is complete (<see
        /// cref="IsComplete"/>).</summary>
        /// <param name="element">The element.</param>
        /// <exception cref="RpcException">The stream has ended without being complete.</exception>
        public bool TryNext([NotNullWhen(true)] out RpcReply? element)
        {
            if (Take(out element))
            {
                return true;
            }
            client.Poll();
            return client.HasNews(call) && TakeOrEnd(out element);
        }

        /// <summary>The next element, without a thread that waits; null: the stream is complete.</summary>
        /// <param name="cancellationToken">Ends the wait; the stream goes on.</param>
        /// <exception cref="RpcException">The stream has ended without being complete, after the elements that came.</exception>
        public async ValueTask<RpcReply?> NextAsync(CancellationToken cancellationToken = default)
        {
            if (!Take(out RpcReply? element))
            {
                await client.NewsAsync(call, cancellationToken).ConfigureAwait(false);
                TakeOrEnd(out element);
            }
            return element;
        }

        /// <summary>Cancels the call, unless it has ended, and drops the elements that were not taken.</summary>
        public void Cancel()
        {
            if (!IsComplete)
            {
                client.Cancel(call, RpcClient.Cancelled(call), true);
            }
        }

        /// <summary>The elements, until the stream is complete. Leaving the loop before cancels the call.</summary>
        public IEnumerator<RpcReply> GetEnumerator()
        {
            try
            {
                while (Next(out RpcReply? element))
                {
                    yield return element;
                }
            }
            finally
            {
                Dispose();
            }
        }

        IEnumerator IEnumerable.GetEnumerator() => GetEnumerator();

        /// <summary>The same without a thread that waits.</summary>
        /// <param name="cancellationToken">Cancels the call.</param>
        public IAsyncEnumerator<RpcReply> GetAsyncEnumerator(CancellationToken cancellationToken = default) =>
            ReadAll(cancellationToken).GetAsyncEnumerator(cancellationToken);

        private async IAsyncEnumerable<RpcReply> ReadAll([EnumeratorCancellation] CancellationToken cancellationToken)
        {
            try
            {
                while (await NextAsync(cancellationToken).ConfigureAwait(false) is RpcReply element)
                {
                    yield return element;
                    cancellationToken.ThrowIfCancellationRequested();
                }
            }
            finally
            {
                Dispose();
            }
        }

        /// <summary>Cancels the call, unless it has ended.</summary>
        public void Dispose()
        {
            Cancel();
            GC.SuppressFinalize(this);
        }

        private bool Take([NotNullWhen(true)] out RpcReply? element)
        {
            if (IsComplete)
            {
                element = null;
                return false;
            }
            return client.TryTake(call, out element) && element != null;
        }

        /// <summary>After news: an element, or the end.</summary>
        private bool TakeOrEnd([NotNullWhen(true)] out RpcReply? element)
        {
            if (Take(out element))
            {
                return true;
            }
            if (call.Error != null)
            {
                throw call.Error;
            }
            IsComplete = true;
            return false;
        }
    }
}
