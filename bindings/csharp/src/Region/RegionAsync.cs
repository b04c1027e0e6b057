using System.Collections.Generic;
using System.Threading;
using System.Threading.Tasks;

namespace Ramway
{
    // Waiting without holding a thread: one watcher sleeps for all asynchronous waits of a handle.
    public sealed partial class Region
    {
        private readonly List<Asked> asked = new List<Asked>();
        // Under the lock of asked.
        private bool watching;

        /// <summary>An asynchronous wait.</summary>
        private sealed class Asked : TaskCompletionSource<uint>
        {
            internal Asked(uint seen)
                : base(TaskCreationOptions.RunContinuationsAsynchronously) => Seen = seen;

            internal uint Seen { get; }

            internal CancellationTokenRegistration Registration { get; set; }
        }

        /// <summary>
        /// <see cref="Wait(System.TimeSpan?, CancellationToken)"/> without holding a thread: one background thread of the process
        /// sleeps for all such waits of this handle.
        /// </summary>
        /// <param name="cancellationToken">Ends the wait at once.</param>
        /// <exception cref="RamwayException">As for Wait, but for TimedOut.</exception>
        /// <exception cref="System.OperationCanceledException">The token was cancelled.</exception>
        public async ValueTask WaitAsync(CancellationToken cancellationToken = default)
        {
            uint count = await WaitAsync((uint)Volatile.Read(ref seen), cancellationToken).ConfigureAwait(false);
            Volatile.Write(ref seen, (int)count);
        }

        /// <summary>
        /// <see cref="Wait(uint, System.TimeSpan?, CancellationToken)"/> without holding a thread.
        /// </summary>
        /// <param name="seen">What <see cref="Count"/>, or an earlier wait, returned.</param>
        /// <param name="cancellationToken">Ends the wait at once.</param>
        /// <exception cref="RamwayException">As for Wait, but for TimedOut.</exception>
        /// <exception cref="System.OperationCanceledException">The token was cancelled.</exception>
        public ValueTask<uint> WaitAsync(uint seen, CancellationToken cancellationToken = default)
        {
            using Use use = Enter(nameof(WaitAsync));
            uint now = Now();
            if (now != seen)
            {
                return new ValueTask<uint>(now);
            }
            return new ValueTask<uint>(cancellationToken.IsCancellationRequested
                ? Task.FromCanceled<uint>(cancellationToken)
                : Ask(seen, cancellationToken));
        }

        /// <summary>Leaves a wait to the watcher. The caller keeps the mapping meanwhile.</summary>
        private Task<uint> Ask(uint seen, CancellationToken cancel)
        {
            var asked = new Asked(seen);
            // All of it under the lock, so that the watcher finds it whole. The callback comes at once if it is cancelled by now.
            lock (this.asked)
            {
                this.asked.Add(asked);
                asked.Registration = cancel.Register(() =>
                {
                    lock (this.asked)
                    {
                        this.asked.Remove(asked);
                    }
                    asked.TrySetCanceled(cancel);
                });
                if (!watching)
                {
                    watching = true;
                    // The watcher keeps the mapping too.
                    Interlocked.Increment(ref users);
                    new Thread(Watch) { IsBackground = true, Name = "ramway region" }.Start();
                }
            }
            return asked.Task;
        }

        /// <summary>Sleeps until nobody waits any more.</summary>
        private void Watch()
        {
            try
            {
                for (;;)
                {
                    uint known = Now();
                    if (!Answer(known, null))
                    {
                        return;
                    }
                    // After a time-out it is checked whether a call still waits.
                    if (Sleep(known, WaitLimit.In(Facts.PollIntervalNanos), out _) is RamwayException e &&
                        e.Kind != ErrorKind.TimedOut)
                    {
                        Answer(known, e);
                        return;
                    }
                }
            }
            finally
            {
                Leave();
            }
        }

        /// <summary>
        /// Answers those who wait for another count than this, or all with a failure. False: nobody waits, and the watcher ends.
        /// </summary>
        private bool Answer(uint count, RamwayException? failure)
        {
            var over = new List<Asked>();
            bool more;
            lock (this.asked)
            {
                for (int i = this.asked.Count - 1; i >= 0; i--)
                {
                    if (failure != null || this.asked[i].Seen != count)
                    {
                        over.Add(this.asked[i]);
                        this.asked.RemoveAt(i);
                    }
                }
                watching = more = this.asked.Count != 0;
            }
            foreach (Asked asked in over)
            {
                if (failure == null)
                {
                    asked.TrySetResult(count);
                }
                else
                {
                    asked.TrySetException(failure);
                }
                asked.Registration.Dispose();
            }
            return more;
        }
    }
}
