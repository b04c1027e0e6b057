using System;
using System.Text;

namespace Ramway
{
    /// <summary>How a server says that a call has ended. The numbers are part of the format (docs/ABI.md, section 20).</summary>
    public enum RpcStatus
    {
        /// <summary>The call succeeded.</summary>
        Ok = (int)Facts.RpcOk,
        /// <summary>The handler replied with an error of its own: a number and a text (<see cref="RpcFault"/>).</summary>
        Application = (int)Facts.RpcApplication,
        /// <summary>The server has no such method. The call was not run.</summary>
        NoSuchMethod = (int)Facts.RpcNoSuchMethod,
        /// <summary>The call's time was over before it was begun. It was not run.</summary>
        TimedOut = (int)Facts.RpcTimedOut,
        /// <summary>The call was cancelled, or its time was over while it ran.</summary>
        Cancelled = (int)Facts.RpcCancelled,
        /// <summary>A limit of the server was reached. The call was not run.</summary>
        Overloaded = (int)Facts.RpcOverloaded,
        /// <summary>The call was run, but its reply is longer than the ring or than the server's limit of bytes.</summary>
        ReplyTooLarge = (int)Facts.RpcReplyTooLarge,
        /// <summary>The server is shutting down. The call was not run.</summary>
        Draining = (int)Facts.RpcDraining,
        /// <summary>The handler threw what it did not mean to.</summary>
        HandlerFailed = (int)Facts.RpcHandlerFailed,
    }

    /// <summary>
    /// What a handler throws to end its call with an error of the application: the client gets <see cref="RpcStatus.Application"/>
    /// with this number and text.
    /// </summary>
    public sealed class RpcFault : Exception
    {
        /// <summary>An error of the application.</summary>
        /// <param name="code">The application's number.</param>
        /// <param name="text">What went wrong.</param>
        public RpcFault(uint code, string text)
            : base(text ?? throw new ArgumentNullException(nameof(text))) => Code = code;

        /// <summary>The application's number.</summary>
        public uint Code { get; }
    }

    /// <summary>
    /// Why a call has no reply. Either the server ended it, which <see cref="Status"/> says, or this side did or the connection is
    /// over, which <see cref="Kind"/> says: TimedOut by the call's own time limit; Interrupted where it was cancelled here; TooLarge for
    /// a request that the ring cannot hold or a reply beyond the client's MaxBuffered; Closed, PeerDead, Corrupt, Detached.
    /// </summary>
    /// <remarks>
    /// <code>
    /// try { reply = client.Call(7, body); }
    /// catch (RpcException e) when (!e.MayHaveRun) { /* it can be made again without being made twice */ }
    /// </code>
    /// </remarks>
    public sealed class RpcException : Exception
    {
        private RpcException(RpcStatus? status, ErrorKind? kind, uint code, string text, bool mayHaveRun)
            : base("ramway: " + (text.Length != 0 || status == null ? text : Summary(status.Value)))
        {
            Status = status;
            Kind = kind;
            Code = code;
            Text = text;
            MayHaveRun = mayHaveRun;
        }

        /// <summary>What the server said; null if this side ended the call or the connection is over.</summary>
        public RpcStatus? Status { get; }

        /// <summary>Why this side ended the call; null if the server did.</summary>
        public ErrorKind? Kind { get; }

        /// <summary>The application's number, with <see cref="RpcStatus.Application"/>; else 0.</summary>
        public uint Code { get; }

        /// <summary>What the server wrote, with Application and HandlerFailed, which may be nothing; else what went wrong.</summary>
        public string Text { get; }

        /// <summary>Whether the server may have begun the call. If not, it can be made again without being made twice.</summary>
        public bool MayHaveRun { get; }

        /// <summary>Whether the call's time limit ended it, on either side.</summary>
        public bool IsTimedOut => Kind == ErrorKind.TimedOut || Status == RpcStatus.TimedOut;

        /// <summary>What a final REPLY says. Bytes that are no UTF-8 are shown as replacement characters.</summary>
        internal static RpcException Of(RpcStatus status, uint code, ReadOnlySpan<byte> body)
        {
            bool hasText = status == RpcStatus.Application || status == RpcStatus.HandlerFailed;
            return new RpcException(status, null, code, hasText ? Encoding.UTF8.GetString(body) : Summary(status), WasRun(status));
        }

        /// <summary>What this side says.</summary>
        internal static RpcException Of(ErrorKind kind, string text, bool mayHaveRun) =>
            new RpcException(null, kind, 0, text, mayHaveRun);

        private static bool WasRun(RpcStatus status) => status != RpcStatus.NoSuchMethod && status != RpcStatus.TimedOut &&
            status != RpcStatus.Overloaded && status != RpcStatus.Draining;

        private static string Summary(RpcStatus status) => status switch
        {
            RpcStatus.Application => "the handler replied with an error without a text",
            RpcStatus.NoSuchMethod => "the server has no such method: see Describe",
            RpcStatus.TimedOut => "the call's time was over before the server began it; it was not run",
            RpcStatus.Cancelled => "the call was cancelled, or its time was over while it ran",
            RpcStatus.Overloaded => "a limit of the server was reached (calls in flight, bytes, its queue); the call was not run",
            RpcStatus.ReplyTooLarge => "the call was run, but its reply is longer than the ring or than the server's limit of bytes",
            RpcStatus.Draining => "the server is shutting down; the call was not run",
            _ => "the handler failed",
        };
    }
}
