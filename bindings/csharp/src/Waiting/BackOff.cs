using System;
using System.Threading;

namespace Ramway
{
    /// <summary>
    /// When a receiver whose ring is empty, by what was seen last, leaves its sender alone for a while: each poll takes tail's line away
    /// from it, and the lines of the frames. A sender that has to fetch them back for each message or two takes 100 ns for each, and the
    /// receiver, which is as fast then, finds no more of them with each poll: both stay in that state until one of them is delayed
    /// (decision 39).
    /// </summary>
    internal struct BackOff
    {
        // Polls until the next trial, and between that and the one after it.
        private int left, every;

        internal static BackOff New => new BackOff { left = Facts.BackOffTrialMin, every = Facts.BackOffTrialMin };

        /// <summary>
        /// Before a poll: <c>found</c> is how many bytes the poll before it found, <c>size</c> about how long a frame is. It waits where
        /// messages come densely. Where they do not, it does not wait, because a message may be waited for by itself, except once in a
        /// while, to find out whether they then come densely.
        /// </summary>
        internal void BeforePoll(ulong found, ulong size)
        {
            if (found >= Facts.BackOffFew * size)
            {
                left = every = Facts.BackOffTrialMin;
                Thread.SpinWait(found < Facts.BackOffMany * size ? Facts.BackOffSpins : 2 * Facts.BackOffSpins);
            }
            else if (--left <= 0)
            {
                left = every = Math.Min(2 * every, Facts.BackOffTrialMax);
                Thread.SpinWait(Facts.BackOffSpins);
            }
        }
    }
}
