using Microsoft.Win32.SafeHandles;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>Rings without a name, for two threads or for two processes.</summary>
    public static class Ring
    {
        /// <summary>
        /// Both ends of a new ring, for two threads of this process. Of the options it uses Capacity, Align, Prefault,
        /// LockMemory, NumaNode, Wait and Membarrier.
        /// </summary>
        /// <exception cref="RamwayException">InvalidArgument, NoSpace, Unsupported (HugePages), Os.</exception>
        public static (Sender Sender, Receiver Receiver) Pair(RingOptions? options = null)
        {
            RingOptions o = options ?? RingOptions.Default;
            return Errors.During("making a ring for two threads", null, () => Make(o));
        }

        /// <summary>
        /// A new ring that has no name but a descriptor, for a process that inherits it or gets it by a socket: <see cref="Sender.FromFd"/>
        /// and <see cref="Receiver.FromFd"/> attach to it. No role is taken. The ring is gone with its last descriptor and handle.
        /// </summary>
        /// <param name="options">As for Create; Discard, Persistent and Mode are refused.</param>
        /// <param name="inheritable">Whether programs that this process starts from now on have the descriptor too, under the same
        /// number (<c>DangerousGetHandle</c>): tell them the number, by an argument for example. Close it after the start.</param>
        /// <exception cref="RamwayException">InvalidArgument, NoSpace, Unsupported, Os.</exception>
        public static SafeFileHandle Unnamed(RingOptions? options = null, bool inheritable = false)
        {
            RingOptions o = options ?? RingOptions.Default;
            return Errors.During("making a ring without a name", null, () => Ramway.Unnamed.Create(o, inheritable));
        }

        private static (Sender, Receiver) Make(RingOptions o)
        {
            if (o.HugePages)
            {
                throw Errors.Fail(ErrorKind.Unsupported, "HugePages is for named rings");
            }
            Spec spec = Spec.Ring(o, o.Check());
            int fd = Errors.Check(Memfd.New("ramway-pair"), "making memory");
            try
            {
                SegmentFile.Fill(fd, spec, o.NumaNode);
                Attachment Attach() => Attachment.Memory(fd, Facts.Block0, spec.Blocks[0], NoLink.Instance, o);
                Sender sender = Sender.Over(Attach(), o);
                try
                {
                    return (sender, Receiver.Over(Attach(), o));
                }
                catch
                {
                    sender.Dispose();
                    throw;
                }
            }
            finally
            {
                Files.Close(fd);
            }
        }
    }
}
