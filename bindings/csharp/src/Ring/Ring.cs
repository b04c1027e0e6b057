using Microsoft.Win32.SafeHandles;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>Rings without a name, for two threads or for two processes.</summary>
    public static class Ring
    {
        /// <summary>
        /// Both ends of a new ring, for two threads of this process. Of the options it looks at Capacity, Align, Prefault,
        /// LockMemory, NumaNode and at how the handles behave.
        /// </summary>
        /// <exception cref="RamwayException">InvalidArgument, NoSpace, Unsupported (HugePages), Os.</exception>
        public static (Sender Sender, Receiver Receiver) Pair(RingOptions? options = null)
        {
            try
            {
                return Make(options ?? RingOptions.Default);
            }
            catch (RamwayException e)
            {
                throw Errors.About(e, "making a ring for two threads", null);
            }
        }

        /// <summary>
        /// A new ring that has no name but a descriptor, for whoever inherits it or gets it by a socket: <see cref="Sender.FromFd"/>
        /// and <see cref="Receiver.FromFd"/> attach to it. No role is taken. The ring is gone with its last descriptor and handle.
        /// </summary>
        /// <param name="options">As for Create; Discard, Persistent and Mode are refused.</param>
        /// <param name="inheritable">Whether programs that this process starts from now on have the descriptor too, under the same
        /// number (<c>DangerousGetHandle</c>): tell them the number, by an argument for example. Close it after the start.</param>
        /// <exception cref="RamwayException">InvalidArgument, NoSpace, Unsupported, Os.</exception>
        public static SafeFileHandle Unnamed(RingOptions? options = null, bool inheritable = false)
        {
            try
            {
                return Ramway.Unnamed.Create(options ?? RingOptions.Default, inheritable);
            }
            catch (RamwayException e)
            {
                throw Errors.About(e, "making a ring without a name", null);
            }
        }

        private static (Sender, Receiver) Make(RingOptions o)
        {
            Libc.RequireSupported();
            if (o.HugePages)
            {
                throw Errors.Fail(ErrorKind.Unsupported, "HugePages is for named rings");
            }
            Spec spec = Spec.Ring(o.Capacity == 0 ? Layout.DefaultCapacity : o.Capacity,
                o.Align == 0 ? Layout.AlignMin : o.Align, Segment.Granule(o));
            int fd = Memfd.New("ramway-pair");
            if (fd < 0)
            {
                throw Errors.Os(fd, "making memory");
            }
            try
            {
                Birth.Allocate(fd, spec, o.NumaNode);
                int error = Files.WriteAt(fd, Header.Format(spec), 0);
                if (error < 0)
                {
                    throw Errors.Os(error, "writing the header page");
                }
                return Ends(fd, spec, o);
            }
            finally
            {
                Files.Close(fd);
            }
        }

        private static (Sender, Receiver) Ends(int fd, Spec spec, RingOptions o)
        {
            Attachment Attach() => Attachment.Memory(fd, Layout.Block0, spec.Blocks[0], NoLink.Instance, o);
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
    }
}
