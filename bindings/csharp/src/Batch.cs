using System;

namespace Ramway
{
    /// <summary>Several messages that are released together.</summary>
    public readonly unsafe ref struct Batch
    {
        /// <summary>The number of messages, at least 1.</summary>
        public int Count => throw new NotImplementedException();

        /// <summary>A message, from 0 to Count - 1. It is given back with the batch.</summary>
        public Message this[int index] => throw new NotImplementedException();

        /// <summary>For foreach.</summary>
        public Enumerator GetEnumerator() => throw new NotImplementedException();

        /// <summary>Gives all messages back at once.</summary>
        public void Dispose() => throw new NotImplementedException();

        /// <summary>Goes through a batch.</summary>
        public ref struct Enumerator
        {
            /// <summary>The message.</summary>
            public Message Current => throw new NotImplementedException();

            /// <summary>Whether there is one more.</summary>
            public bool MoveNext() => throw new NotImplementedException();
        }
    }
}
