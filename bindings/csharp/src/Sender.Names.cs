namespace Ramway
{
    public sealed partial class Sender
    {
        /// <summary>Makes a ring that must be new, and is its sender.</summary>
        /// <remarks>
        /// The name ([A-Za-z0-9._-]{1,80}, not starting with a dot, not ending in ".sock") stands in the Ramway directory:
        /// RAMWAY_DIR, else /dev/shm/ramway-UID. With a "/" in it, it is a path. The name goes when the last handle does, unless
        /// messages (or an orderly close) are undelivered: then it stays for the next receiver. What dead processes left empty is
        /// replaced.
        /// </remarks>
        /// <exception cref="RamwayException">
        /// AlreadyExists if somebody uses the name, if it holds what was never delivered (unless Discard), or if something else
        /// has it; NoSpace; InvalidArgument for a name or options that cannot be; Unsupported for a file system without shared
        /// mappings or locks; PermissionDenied; TimedOut if others never let go of the name.
        /// </exception>
        public static Sender Create(string name, RingOptions? options = null) => Attach(name, How.Create, options);

        /// <summary>
        /// The sender of a ring that exists, also of one that dead processes left: its messages are still there. Waits as
        /// Timeout of the options says.
        /// </summary>
        /// <exception cref="RamwayException">
        /// NotFound if there is none, Busy if it has a sender; AbiMismatch or Corrupt if the name leads to what is no ring of
        /// this version, which is left alone.
        /// </exception>
        public static Sender Open(string name, RingOptions? options = null) => Attach(name, How.Open, options);

        /// <summary>Opens a ring if it exists, and makes it if not.</summary>
        /// <exception cref="RamwayException">
        /// As for the other two; InvalidArgument if it exists with another capacity or alignment than was asked for.
        /// </exception>
        public static Sender OpenOrCreate(string name, RingOptions? options = null) => Attach(name, How.OpenOrCreate, options);

        /// <summary>
        /// The sender of the ring behind a descriptor of <see cref="Ring.Unnamed"/>, inherited or received by a socket. The
        /// descriptor stays the caller's, and may be closed after this. Of the options Discard, Persistent and Mode are refused.
        /// </summary>
        /// <exception cref="RamwayException">
        /// Busy if the role is taken; InvalidArgument, AbiMismatch or Corrupt for a descriptor of something else; Os for none.
        /// </exception>
        public static Sender FromFd(int fd, RingOptions? options = null)
        {
            options ??= RingOptions.Default;
            return Over(Unnamed.Attach(fd, options, Role.Producer), options);
        }

        private static Sender Attach(string name, How how, RingOptions? options)
        {
            options ??= RingOptions.Default;
            return Over(Attachment.Named(name, how, options, Role.Producer), options);
        }

        private static Sender Over(Attachment attachment, RingOptions options)
        {
            try
            {
                return new Sender(attachment, options);
            }
            catch
            {
                attachment.Release();
                throw;
            }
        }
    }
}
