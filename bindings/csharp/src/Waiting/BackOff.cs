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
        /// Before a poll, where the one before it found so many bytes, in frames of about this size. Where messages come densely: some
        /// time. Where they do not, nothing, since a message may be waited for by itself; but now and then it is tried whether they would.
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
