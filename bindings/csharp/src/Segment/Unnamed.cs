using System;
using Microsoft.Win32.SafeHandles;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>Rings whose descriptor is handed to another process (ABI.md, section 11, at its end).</summary>
    internal static class Unnamed
    {
        /// <summary>New memory with an empty ring; no role is taken.</summary>
        internal static SafeFileHandle Create(RingOptions o, bool inheritable)
        {
            Spec spec = Spec.Ring(o, o.Check(How.Open)).Named(false);
            int fd = Errors.Check(Memfd.Unsealed("ramway-ring"), "making memory");
            var handle = new SafeFileHandle((IntPtr)fd, true);
            try
            {
                SegmentFile.Fill(fd, spec, o.NumaNode);
                if (inheritable)
                {
                    Errors.Check(Files.MakeInheritable(fd), "making the descriptor inheritable");
                }
                return handle;
            }
            catch
            {
                handle.Dispose();
                throw;
            }
        }

        /// <summary>Attaches to a role of the ring behind a descriptor, which stays the caller's.</summary>
        internal static Attachment Attach(int fd, RingOptions o, Role role) =>
            Errors.During("attaching to the ring of descriptor " + fd, null, () =>
            {
                Spec wanted = Spec.Ring(o, o.Check(How.Open));
                Header h = Judge(fd);
                Attachment.CheckRing(o, wanted, h);
                // A duplicate would share the locks of all who inherited the descriptor.
                int own = Errors.Check(Files.Reopen(fd), "opening /proc/self/fd/" + fd + " for the locks (is /proc mounted?)");
                var link = new SegmentLink(own);
                try
                {
                    Again.Try(o.Timeout, () => Lock(link, role));
                }
                catch
                {
                    link.Close();
                    throw;
                }
                return Attachment.Memory(fd, Facts.Block0, h.Blocks[0], link, o);
            });

        private static Header Judge(int fd)
        {
            Errors.Check(Files.Stat(fd, out Stat stat), "checking the descriptor");
            if (!stat.IsRegular)
            {
                throw Errors.Fail(ErrorKind.InvalidArgument, "this is " + stat.Describe() + ", not the memory of a ring");
            }
            if (stat.Links != 0)
            {
                throw Errors.Fail(ErrorKind.InvalidArgument,
                    "this descriptor leads to a file that has a name: open the ring by its name");
            }
            SegmentFile.CheckFileSystem(fd, false);
            Header h = Header.Check(SegmentFile.ReadPage(fd, out ulong size), size);
            h.Require(SegmentKind.Ring);
            return h;
        }

        private static bool Lock(SegmentLink link, Role role)
        {
            if (!link.TryUse())
            {
                throw Again.Raced("another process holds byte 0 of the ring exclusively");
            }
            link.TakeRole(role.LockByte(), SegmentKind.Ring);
            return true;
        }
    }
}
