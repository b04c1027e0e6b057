using System;

namespace Ramway
{
    /// <summary>Why an attempt to open or create is to be made again, and what to say when there is no time left.</summary>
    internal sealed class Again : Exception
    {
        internal Again(RamwayException error, bool race = false, bool absent = false)
            : base(null, error)
        {
            Error = error;
            Race = race;
            Absent = absent;
        }

        internal RamwayException Error { get; }

        /// <summary>
        /// Somebody else was in the middle of something, which is waited for in any case. Else nothing is there to open, or
        /// somebody has the role.
        /// </summary>
        internal bool Race { get; }

        /// <summary>Nothing is there to open.</summary>
        internal bool Absent { get; }

        internal static Again Raced(string why) =>
            new Again(Errors.Fail(ErrorKind.TimedOut, why + ", over and over until the deadline"), race: true);

        internal static Again Missing(string text) => new Again(Errors.Fail(ErrorKind.NotFound, text), absent: true);
    }
}
