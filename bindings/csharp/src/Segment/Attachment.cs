using Ramway.Sys;

namespace Ramway
{
    /// <summary>
    /// All that a Sender or a Receiver stands on: mapped memory whose geometry was checked, and the role, held until Release.
    /// </summary>
    internal sealed unsafe class Attachment
    {
        private Attachment(byte* header, byte* block, byte* data, int fd, in Geometry g, ILink link)
        {
            Header = header;
            Ring = (RingBlock*)block;
            Data = data;
            File = fd;
            DataOffset = (long)g.DataOffset;
            Capacity = g.Capacity;
            Align = g.Align;
            Link = link;
        }

        /// <summary>The header page: <see cref="Segment.HeaderLength"/> bytes, readable and writable, shared.</summary>
        internal byte* Header { get; private set; }

        /// <summary>The ring's words in the header page.</summary>
        internal RingBlock* Ring { get; private set; }

        /// <summary>
        /// The ring's data: Capacity bytes, mapped twice back to back, readable and writable. A receiver's too: the type of a
        /// view that lives longer (<see cref="System.Memory{T}"/>) is writable, and a stray write to memory that is not would
        /// end the process.
        /// </summary>
        internal byte* Data { get; private set; }

        /// <summary>The segment's file, for mapping the data once more, or -1 after <see cref="CloseFile"/>. It holds no lock.</summary>
        internal int File { get; private set; }

        /// <summary>Where the data begins in the file.</summary>
        internal long DataOffset { get; }

        /// <summary>A power of two, at least a page.</summary>
        internal ulong Capacity { get; }

        /// <summary>A power of two from 16 to 4096.</summary>
        internal uint Align { get; }

        /// <summary>How the handle is tied to its peer.</summary>
        internal ILink Link { get; }

        /// <summary>For messages; empty for a ring without a name.</summary>
        internal string Name { get; private set; } = "";

        /// <summary>
        /// Creates or opens a named ring, takes the role and maps the ring. It blocks as the options' Timeout says, and up to a
        /// second in races with others.
        /// </summary>
        internal static Attachment Named(string name, How how, RingOptions o, Role role)
        {
            Attachment a = Attach.Ring(name, how, o, role);
            a.Name = name;
            return a;
        }

        /// <summary>
        /// Maps the header page and a ring's data of a segment in memory without a name, which was checked: blockOffset is
        /// Layout.Block0 or Block1, g what Header.Check said of it. The file stays the caller's: it is duplicated. On an exception
        /// the link stays the caller's too, else Release closes it.
        /// </summary>
        internal static Attachment Memory(int fd, int blockOffset, in Geometry g, ILink link, RingOptions o, string name = "")
        {
            int own = Files.Dup(fd);
            if (own < 0)
            {
                throw Errors.Os(own, "duplicating a descriptor");
            }
            try
            {
                Attachment a = Over(own, blockOffset, g, link, o);
                a.Name = name;
                return a;
            }
            catch
            {
                Files.Close(own);
                throw;
            }
        }

        /// <summary>Maps a ring; on success the attachment owns the file and the link.</summary>
        internal static Attachment Over(int fd, int blockOffset, in Geometry g, ILink link, RingOptions o)
        {
            byte* page = Segment.MapHeader(fd, true);
            byte* data = null;
            try
            {
                int error = Sys.Memory.MirrorMap(fd, (long)g.DataOffset, (long)g.Capacity, true, out data);
                if (error < 0)
                {
                    throw Errors.Os(error, "mapping the ring's data twice");
                }
                Placement.Place(data, (long)g.Capacity, 2, true, o, "placing the ring's data");
                return new Attachment(page, page + blockOffset, data, fd, g, link);
            }
            catch
            {
                if (data != null)
                {
                    Sys.Memory.Unmap(data, 2 * (long)g.Capacity);
                }
                Sys.Memory.Unmap(page, Segment.HeaderLength);
                throw;
            }
        }

        /// <summary>Gives the file's descriptor back where no further mapping will be made.</summary>
        internal void CloseFile()
        {
            if (File >= 0)
            {
                Files.Close(File);
                File = -1;
            }
        }

        /// <summary>
        /// Unmaps the memory and lets the role go, in this order. To be called once, when nobody uses the memory any more; with
        /// keepMapped somebody may still look at the data, which then stays until the process ends.
        /// </summary>
        internal void Release(bool keepMapped = false)
        {
            if (Data != null && !keepMapped)
            {
                Sys.Memory.Unmap(Data, 2 * (long)Capacity);
            }
            Data = null;
            if (Header != null)
            {
                Sys.Memory.Unmap(Header, Segment.HeaderLength);
            }
            Header = null;
            Ring = null;
            CloseFile();
            Link.Close();
        }
    }
}
