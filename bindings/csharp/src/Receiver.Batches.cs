using System;
using System.Threading;

namespace Ramway
{
    public sealed unsafe partial class Receiver
    {
        /// <summary>How many messages a batch has at most if nobody says otherwise.</summary>
        private const int MostOfBatch = 1024;

        /// <summary>
        /// Gives up to max messages, those that are there, and waits for the first one without a limit. The receiver keeps 24
        /// bytes for each message, which the next batch uses again.
        /// </summary>
        /// <exception cref="RamwayException">As for Recv, and InvalidArgument for a max below 1.</exception>
        public Batch RecvBatch(int max)
        {
            CheckMax(max);
            EnterOut();
            if (gate.IsShut || head == tail && !Poll() || !Parse(ref frames[0]))
            {
                NextOrThrow(null, default);
            }
            return Gather(max);
        }

        /// <summary>
        /// The same, and waits no longer than the time-out (null: without a limit) and until the token is cancelled, which is
        /// looked at only if the call has to wait.
        /// </summary>
        /// <exception cref="RamwayException">As above, and TimedOut.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public Batch RecvBatch(int max = MostOfBatch, TimeSpan? timeout = null, CancellationToken cancellationToken = default)
        {
            Patience.Check(timeout);
            CheckMax(max);
            EnterOut();
            if (gate.IsShut || head == tail && !Poll() || !Parse(ref frames[0]))
            {
                NextOrThrow(timeout, cancellationToken);
            }
            return Gather(max);
        }

        /// <summary>The same without waiting; false if there is no message now.</summary>
        /// <exception cref="RamwayException">As for RecvBatch.</exception>
        public bool TryRecvBatch(int max, out Batch batch)
        {
            CheckMax(max);
            EnterOut();
            if ((gate.IsShut || head == tail && !Look() || !Parse(ref frames[0])) && !TryNext())
            {
                batch = default;
                return false;
            }
            batch = Gather(max);
            return true;
        }

        /// <summary>The same of up to 1024 messages.</summary>
        /// <exception cref="RamwayException">As for RecvBatch.</exception>
        public bool TryRecvBatch(out Batch batch) => TryRecvBatch(MostOfBatch, out batch);

        private void CheckMax(int max)
        {
            if (max < 1)
            {
                throw Fail(ErrorKind.InvalidArgument, "a batch of at most " + max + " messages: ask for at least 1");
            }
        }

        /// <summary>Takes what there is besides the first frame, gives all out and leaves the gate.</summary>
        private Batch Gather(int max)
        {
            Frame[] into = frames;
            int count = 1;
            // An error stays in the handle's state: the next call throws it.
            while (count < max && (head != tail || Ready(out _)))
            {
                if (count == into.Length)
                {
                    into = Grow(max);
                }
                if (!Parse(ref into[count]))
                {
                    Die(ErrorKind.Corrupt);
                    break;
                }
                count++;
            }
            return new Batch(this, gate.LeaveOut(), count);
        }

        /// <summary>More room for frames. If there is none, nothing is out.</summary>
        private Frame[] Grow(int max)
        {
            try
            {
                Array.Resize(ref frames, (int)Math.Min(Math.Max(16, 2L * frames.Length), max));
            }
            catch
            {
                head = released;
                LeaveEmpty();
                throw;
            }
            return frames;
        }
    }
}
