using System;

namespace Ramway
{
    /// <summary>
    /// What a call throws that fails: a <see cref="Kind"/> to decide on, and a message that says what was tried, on which
    /// name, and what to do.
    /// </summary>
    /// <remarks>
    /// A cancelled <see cref="System.Threading.CancellationToken"/> is an <see cref="OperationCanceledException"/> instead, and
    /// the use of a message, slot or batch after its end an <see cref="ObjectDisposedException"/>.
    /// <code>
    /// try { receiver.Recv(); }
    /// catch (RamwayException e) when (e.Kind == ErrorKind.Closed) { /* that was all */ }
    /// </code>
    /// </remarks>
    public sealed class RamwayException : Exception
    {
        internal RamwayException(ErrorKind kind, string? operation, string? name, string? text, int errno, Exception? cause)
            : base(null, cause)
        {
            Kind = kind;
            Operation = operation;
            Name = name;
            Text = text;
            Errno = errno;
        }

        /// <summary>What to decide on.</summary>
        public ErrorKind Kind { get; }

        /// <summary>What was tried, such as "creating the ring"; null if that is not known.</summary>
        public string? Operation { get; }

        /// <summary>The name or path it was tried on; null if there is none.</summary>
        public string? Name { get; }

        /// <summary>The operating system's error number; 0 if it was not the cause.</summary>
        public int Errno { get; }

        /// <summary>How many messages an ejection cost, if the kind is Lagged; else 0.</summary>
        public ulong Lost { get; internal set; }

        /// <summary>What was found and what to do.</summary>
        internal string? Text { get; }

        /// <summary>What was tried, on what, what was found, and the operating system's error.</summary>
        public override string Message
        {
            get
            {
                string message = "ramway";
                if (!string.IsNullOrEmpty(Operation))
                {
                    message += ": " + Operation;
                }
                if (!string.IsNullOrEmpty(Name))
                {
                    message += (string.IsNullOrEmpty(Operation) ? ": '" : " '") + Name + "'";
                }
                if (!string.IsNullOrEmpty(Text))
                {
                    message += ": " + Text;
                }
                else if (Errno == 0)
                {
                    message += ": " + Errors.Summary(Kind);
                }
                return Errno == 0 ? message : message + ": " + Errors.Describe(Errno);
            }
        }
    }
}
