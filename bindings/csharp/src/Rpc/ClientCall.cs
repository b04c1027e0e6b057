using System;
using System.Collections.Generic;

namespace Ramway
{
    /// <summary>A call as its client keeps it. Everything in it is the ledger's, under the client's lock.</summary>
    internal sealed class ClientCall : IHasDeadline
    {
        internal ClientCall(uint method, uint window, long deadline, bool awaited = false)
        {
            Awaited = awaited;
            Method = method;
            Window = window;
            Deadline = deadline;
        }

        internal uint Method { get; }

        /// <summary>0: one reply; else how many elements may be under way.</summary>
        internal uint Window { get; }

        public long Deadline { get; }

        public int HeapIndex { get; set; } = -1;

        /// <summary>Somebody waits for the one reply until it is there: then it is taken at once.</summary>
        internal bool Awaited { get; }

        /// <summary>0: its CALL was not published.</summary>
        internal ulong Id;

        /// <summary>A copy of the request, while it is not published.</summary>
        internal ReadOnlyMemory<byte> Meta, Body;

        /// <summary>Its place among those that are not published.</summary>
        internal LinkedListNode<ClientCall>? Node;

        /// <summary>The outcome is known: <see cref="Error"/>, or else the reply, or the end of the stream.</summary>
        internal bool Decided;

        internal Exception? Error;

        /// <summary>Replies that nobody has taken: elements, or the one reply. Bytes that they hold.</summary>
        internal readonly Queue<RpcReply> Replies = new Queue<RpcReply>(1);

        /// <summary>What a stream's final REPLY had as metadata.</summary>
        internal RpcReply? Last;

        /// <summary>Elements that came, and how many were allowed so far.</summary>
        internal ulong Received, Granted;

        internal bool OwesCancel;
        internal uint OwedCredit;

        /// <summary>It is among those that owe something.</summary>
        internal bool InOwed;

        /// <summary>Who is to be told of a change; null: nobody waits.</summary>
        internal IWaker? Waker;

        internal bool IsStream => Window != 0;

        internal bool IsPublished => Id != 0;

        /// <summary>Whether a wait for it is over.</summary>
        internal bool HasNews => Decided || Replies.Count != 0;
    }

    /// <summary>Who waits for a call.</summary>
    internal interface IWaker
    {
        /// <summary>
        /// Something has changed. Called without a lock, from any thread. here: on a thread that may run whatever follows.
        /// </summary>
        void Wake(bool here);
    }
}
