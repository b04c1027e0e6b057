using System;
using System.Diagnostics.CodeAnalysis;
using System.Threading;
using System.Threading.Tasks;

namespace Ramway
{
    /// <summary>
    /// A call that is under way. Letting go of it, by <see cref="Dispose"/> or as garbage, cancels it. One thread or task at a time waits
    /// for it.
    /// </summary>
    public sealed class RpcPending : IDisposable
    {
        private readonly RpcClient client;
        private readonly ClientCall call;
        private RpcReply? reply;

        internal RpcPending(RpcClient client, ClientCall call)
        {
            this.client = client;
            this.call = call;
        }

        /// <summary>A call that is forgotten is cancelled when this is collected.</summary>
        ~RpcPending() => LetGo();

        /// <summary>Waits for the reply. Once it is there, it is given again.</summary>
        /// <param name="timeout">How long to wait; null: as long as the call takes. When it is over the call goes on.</param>
        /// <param name="cancellationToken">Ends the wait; the call goes on.</param>
        /// <exception cref="RpcException">The call has no reply.</exception>
        /// <exception cref="RamwayException">TimedOut: nothing has come so far.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public RpcReply Wait(TimeSpan? timeout = null, CancellationToken cancellationToken = default)
        {
            WaitLimit.Check(timeout);
            return reply ?? Take(client.AwaitFor(call, timeout, cancellationToken));
        }

        /// <summary><see cref="Wait"/> without a thread that waits.</summary>
        /// <param name="cancellationToken">Ends the wait; the call goes on.</param>
        public async Task<RpcReply> WaitAsync(CancellationToken cancellationToken = default)
        {
            if (reply == null)
            {
                await client.NewsAsync(call, cancellationToken).ConfigureAwait(false);
            }
            return reply ?? Take(true);
        }

        /// <summary>The reply if it is there, without waiting.</summary>
        /// <param name="reply">The reply.</param>
        /// <exception cref="RpcException">The call has no reply, and will not have one.</exception>
        public bool TryGet([NotNullWhen(true)] out RpcReply? reply)
        {
            if (this.reply == null)
            {
                client.Poll();
                if (!client.HasNews(call))
                {
                    reply = null;
                    return false;
                }
                Take(true);
            }
            reply = this.reply!;
            return true;
        }

        /// <summary>Cancels the call, unless its outcome is known. The server is told; whether it had run the call stays open.</summary>
        public void Cancel()
        {
            if (reply == null)
            {
                client.Cancel(call, RpcClient.Cancelled(call), false);
            }
        }

        /// <summary>Cancels the call, unless its outcome is known, and lets go of its reply.</summary>
        public void Dispose()
        {
            LetGo();
            GC.SuppressFinalize(this);
        }

        private void LetGo()
        {
            if (reply == null)
            {
                client.Cancel(call, RpcClient.Cancelled(call), true);
            }
        }

        private RpcReply Take(bool there)
        {
            if (!there)
            {
                throw Errors.Fail(ErrorKind.TimedOut, "waiting for a reply", null, "nothing has come so far; the call goes on");
            }
            RpcReply taken = client.Result(call);
            reply = taken;
            return taken;
        }
    }
}
