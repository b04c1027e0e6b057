using System;
using System.Text;
using System.Threading;
using System.Threading.Tasks;
using Ramway.Sys;

namespace Ramway
{
    // What runs handlers: the pump itself, and threads of the pool.
    internal sealed partial class ServerConnection
    {
        /// <summary>How many elements a handler gives before other calls run.</summary>
        private const int ElementsPerRun = Facts.RpcFramesPerRound;

        /// <summary>Runs an inline handler, without the lock.</summary>
        private Outcome Invoke(ServerCall call)
        {
            var outcome = new Outcome { Status = RpcStatus.Ok };
            try
            {
                outcome.Body = call.Handler!.Inline!(call.Request!);
            }
            catch (Exception e)
            {
                outcome.Status = Failed(call, e, out outcome.Code, out outcome.Body);
            }
            return outcome;
        }

        private void AnswerInline(ServerCall call, in Outcome outcome)
        {
            call.State = CallState.Over;
            if (!over)
            {
                Reply(call, outcome.Status, outcome.Code, call.Request!.ReplyMeta, outcome.Body);
            }
        }

        /// <summary>What a handler has given.</summary>
        private struct Outcome
        {
            internal RpcStatus Status;
            internal uint Code;
            internal ReadOnlyMemory<byte> Body;
        }

        /// <summary>Runs a call that has a place, on a thread of the pool, until it ends or has to wait for its reader.</summary>
        internal void Run(ServerCall call)
        {
            lock (gate)
            {
                // A call that its own side gave up before it was begun is answered here, where nobody else can be about to begin it.
                bool begins = !call.Begun && !over && !call.Cancelled && call.Deadline > Clock.Nanoseconds;
                if (!call.Begun && !begins)
                {
                    if (!over)
                    {
                        call.TimedOut |= !call.Cancelled;
                        call.Cancelled = true;
                        Finish(call, RpcStatus.TimedOut, 0, default, default);
                    }
                    call.State = CallState.Over;
                }
                else
                {
                    call.Begun = true;
                    call.State = CallState.Running;
                }
            }
            if (call.State == CallState.Over)
            {
                server.Pool.Release(share);
            }
            else if (call.Handler!.Stream != null)
            {
                _ = RunStream(call);
            }
            else
            {
                _ = RunReply(call);
            }
        }

        private async Task RunReply(ServerCall call)
        {
            Handler handler = call.Handler!;
            RpcRequest request = call.Request!;
            RpcStatus status = RpcStatus.Ok;
            uint code = 0;
            ReadOnlyMemory<byte> body = default;
            bool placed = true;
            try
            {
                if (handler.Reply != null)
                {
                    body = handler.Reply(request);
                }
                else
                {
                    Task<ReadOnlyMemory<byte>> later = handler.Later!(request);
                    if (!later.IsCompleted)
                    {
                        placed = LeavePlace(placed);
                    }
                    body = await later.ConfigureAwait(false);
                }
            }
            catch (Exception e)
            {
                status = Failed(call, e, out code, out body);
            }
            lock (gate)
            {
                call.State = CallState.Over;
                if (!over)
                {
                    Reply(call, status, code, request.ReplyMeta, body);
                }
            }
            LeavePlace(placed);
        }

        /// <summary>A handler that awaits something holds no place: the number of those is limited by the calls in flight.</summary>
        private bool LeavePlace(bool placed)
        {
            if (placed)
            {
                server.Pool.Release(share);
            }
            return false;
        }

        /// <summary>Where one reply was asked for as a stream, it is a stream of one element.</summary>
        private void Reply(ServerCall call, RpcStatus status, uint code, ReadOnlyMemory<byte> meta, ReadOnlyMemory<byte> body)
        {
            if (call.Window != 0 && status == RpcStatus.Ok && !call.Cancelled)
            {
                if (!ledger.TryElement(call, meta, body, out ReplyFrame? element) || !SendElement(call, element))
                {
                    status = RpcStatus.ReplyTooLarge;
                }
                meta = body = default;
            }
            Finish(call, status, code, meta, body);
        }

        /// <summary>What a handler's exception is to the client.</summary>
        private RpcStatus Failed(ServerCall call, Exception e, out uint code, out ReadOnlyMemory<byte> text)
        {
            code = 0;
            text = default;
            if (e is OperationCanceledException && Volatile.Read(ref call.Cancelled))
            {
                return RpcStatus.Cancelled;
            }
            text = Encoding.UTF8.GetBytes(e.Message);
            if (e is RpcFault fault)
            {
                code = fault.Code;
                return RpcStatus.Application;
            }
            server.HandlerFailed(e);
            return RpcStatus.HandlerFailed;
        }

        /// <summary>What becomes of a stream after an element.</summary>
        private enum After
        {
            /// <summary>It was written: the next one may be asked for.</summary>
            GoOn,
            /// <summary>It waits for credit or room, and the handler is asked again after that.</summary>
            Pause,
            TooLarge,
            /// <summary>Nobody wants it.</summary>
            Stop,
        }

        private async Task RunStream(ServerCall call)
        {
            RpcRequest request = call.Request!;
            RpcStatus status = RpcStatus.Ok;
            uint code = 0;
            ReadOnlyMemory<byte> text = default;
            bool placed = true;
            try
            {
                call.Elements ??= call.Handler!.Stream!(request).GetAsyncEnumerator(TokenOf(call));
                for (int given = 1; !Volatile.Read(ref call.Cancelled); given++)
                {
                    ValueTask<bool> next = call.Elements.MoveNextAsync();
                    if (!next.IsCompleted)
                    {
                        placed = LeavePlace(placed);
                    }
                    if (!await next.ConfigureAwait(false))
                    {
                        break;
                    }
                    After after = Offer(call, call.Elements.Current, given == ElementsPerRun);
                    if (after == After.Pause)
                    {
                        LeavePlace(placed);
                        return;
                    }
                    if (after != After.GoOn)
                    {
                        status = after == After.TooLarge ? RpcStatus.ReplyTooLarge : RpcStatus.Cancelled;
                        break;
                    }
                }
            }
            catch (Exception e)
            {
                status = Failed(call, e, out code, out text);
            }
            try
            {
                if (call.Elements != null)
                {
                    await call.Elements.DisposeAsync().ConfigureAwait(false);
                }
            }
            catch (Exception e)
            {
                status = Failed(call, e, out code, out text);
            }
            lock (gate)
            {
                call.State = CallState.Over;
                if (!over)
                {
                    Finish(call, status, code, request.ReplyMeta, text);
                }
            }
            LeavePlace(placed);
        }

        /// <summary>Sends an element, or keeps it. last: the handler's run is over, and it waits for a place again.</summary>
        private After Offer(ServerCall call, ReadOnlyMemory<byte> body, bool last)
        {
            lock (gate)
            {
                if (over || call.Cancelled)
                {
                    return After.Stop;
                }
                ReadOnlyMemory<byte> meta = call.Request!.ReplyMeta;
                call.Request.ReplyMeta = default;
                if (!ledger.TryElement(call, meta, body, out ReplyFrame? element))
                {
                    return After.TooLarge;
                }
                if (call.Credit == 0)
                {
                    if (!ledger.TryHold(element))
                    {
                        return After.TooLarge;
                    }
                    call.State = CallState.Paused;
                    return After.Pause;
                }
                if (!SendElement(call, element))
                {
                    return After.TooLarge;
                }
                if (call.State == CallState.Paused)
                {
                    return After.Pause;
                }
                if (last)
                {
                    Resume(call);
                    return After.Pause;
                }
                return After.GoOn;
            }
        }
    }
}
