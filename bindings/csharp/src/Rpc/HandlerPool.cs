using System.Collections.Generic;

namespace Ramway
{
    /// <summary>A client's part of a <see cref="HandlerPool"/>. The pool's own.</summary>
    internal sealed class PoolShare
    {
        internal readonly LinkedList<ServerCall> Waiting = new LinkedList<ServerCall>();
        internal readonly LinkedListNode<PoolShare> Node;
        internal int Running;

        internal PoolShare() => Node = new LinkedListNode<PoolShare>(this);
    }

    /// <summary>
    /// The places for handlers that run, a fixed number for all clients: clients that wait are served round-robin, and while others
    /// wait no client has more than half of them, rounded up. It keeps nothing of calls that are taken out. For any number of threads.
    /// </summary>
    internal sealed class HandlerPool
    {
        private readonly object gate = new object();
        private readonly int places;
        private readonly System.Action<ServerCall> start;
        // Clients with calls that wait, the next one first.
        private readonly LinkedList<PoolShare> queued = new LinkedList<PoolShare>();
        private int running;

        /// <param name="places">How many handlers run at a time.</param>
        /// <param name="start">Has a call's handler run elsewhere: it is called with a lock held.</param>
        internal HandlerPool(int places, System.Action<ServerCall> start)
        {
            this.places = places;
            this.start = start;
        }

        /// <summary>Has a call run, now or when there is a place. <see cref="Release"/> follows its run.</summary>
        internal void Add(PoolShare share, ServerCall call)
        {
            lock (gate)
            {
                call.PoolNode = share.Waiting.AddLast(call);
                if (share.Node.List == null)
                {
                    queued.AddLast(share.Node);
                }
                Fill();
            }
        }

        /// <summary>Takes out a call that waits. False: it does not, but runs or is about to.</summary>
        internal bool Remove(PoolShare share, ServerCall call)
        {
            lock (gate)
            {
                if (call.PoolNode == null)
                {
                    return false;
                }
                TakeOut(share, call);
                return true;
            }
        }

        /// <summary>A run is over.</summary>
        internal void Release(PoolShare share)
        {
            lock (gate)
            {
                running--;
                share.Running--;
                Fill();
            }
        }

        private void Fill()
        {
            while (running < places && Next() is PoolShare share)
            {
                ServerCall call = share.Waiting.First!.Value;
                TakeOut(share, call);
                if (share.Node.List != null)
                {
                    queued.Remove(share.Node);
                    queued.AddLast(share.Node);
                }
                running++;
                share.Running++;
                start(call);
            }
        }

        /// <summary>Which client is next: of those that have less than half, the first; where only one waits, that one.</summary>
        private PoolShare? Next()
        {
            LinkedListNode<PoolShare>? first = queued.First;
            if (first == null || first.Next == null)
            {
                return first?.Value;
            }
            for (LinkedListNode<PoolShare>? at = first; at != null; at = at.Next)
            {
                if (at.Value.Running < (places + 1) / 2)
                {
                    return at.Value;
                }
            }
            return null;
        }

        private void TakeOut(PoolShare share, ServerCall call)
        {
            share.Waiting.Remove(call.PoolNode!);
            call.PoolNode = null;
            if (share.Waiting.Count == 0)
            {
                queued.Remove(share.Node);
            }
        }
    }
}
