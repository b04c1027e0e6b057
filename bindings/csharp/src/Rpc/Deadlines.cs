using System.Collections.Generic;
using System.Diagnostics.CodeAnalysis;

namespace Ramway
{
    /// <summary>What has a deadline, and knows its place in a <see cref="Deadlines{T}"/>.</summary>
    internal interface IHasDeadline
    {
        /// <summary>In nanoseconds of <see cref="Sys.Clock"/>; long.MaxValue: none.</summary>
        long Deadline { get; }

        /// <summary>Where it is; -1: nowhere. The heap's own.</summary>
        int HeapIndex { get; set; }
    }

    /// <summary>
    /// A heap by deadlines, from which anything can be taken out: what has ended leaves nothing behind, however late its deadline is.
    /// </summary>
    internal sealed class Deadlines<T>
        where T : class, IHasDeadline
    {
        private readonly List<T> heap = new List<T>();

        internal int Count => heap.Count;

        /// <summary>The earliest deadline; long.MaxValue: none.</summary>
        internal long Next => heap.Count == 0 ? long.MaxValue : heap[0].Deadline;

        /// <summary>Adds it, if it has a deadline.</summary>
        internal void Add(T item)
        {
            item.HeapIndex = -1;
            if (item.Deadline == long.MaxValue)
            {
                return;
            }
            heap.Add(item);
            Up(heap.Count - 1, item);
        }

        /// <summary>Takes it out, if it is here.</summary>
        internal void Remove(T item)
        {
            int at = item.HeapIndex;
            if (at < 0)
            {
                return;
            }
            item.HeapIndex = -1;
            T last = heap[heap.Count - 1];
            heap.RemoveAt(heap.Count - 1);
            if (at < heap.Count)
            {
                Down(at, last);
                Up(last.HeapIndex, last);
            }
        }

        /// <summary>Takes out the earliest, if its time is over.</summary>
        internal bool TryTake(long now, [NotNullWhen(true)] out T? item)
        {
            item = null;
            if (heap.Count == 0 || heap[0].Deadline > now)
            {
                return false;
            }
            item = heap[0];
            Remove(item);
            return true;
        }

        private void Up(int at, T item)
        {
            while (at > 0 && heap[(at - 1) / 2].Deadline > item.Deadline)
            {
                Place(at, heap[(at - 1) / 2]);
                at = (at - 1) / 2;
            }
            Place(at, item);
        }

        private void Down(int at, T item)
        {
            for (; ; )
            {
                int child = 2 * at + 1;
                if (child >= heap.Count)
                {
                    break;
                }
                if (child + 1 < heap.Count && heap[child + 1].Deadline < heap[child].Deadline)
                {
                    child++;
                }
                if (heap[child].Deadline >= item.Deadline)
                {
                    break;
                }
                Place(at, heap[child]);
                at = child;
            }
            Place(at, item);
        }

        private void Place(int at, T item)
        {
            heap[at] = item;
            item.HeapIndex = at;
        }
    }
}
