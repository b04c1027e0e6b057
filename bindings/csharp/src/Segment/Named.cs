using System;
using System.Threading;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>A named segment that this process uses.</summary>
    internal sealed class OpenSegment
    {
        internal OpenSegment(int file, Header header, NamedLink link)
        {
            File = file;
            Header = header;
            Link = link;
        }

        /// <summary>A description without locks, for mapping.</summary>
        internal int File { get; }

        internal Header Header { get; }

        internal NamedLink Link { get; }

        /// <summary>Lets everything go.</summary>
        internal void Drop()
        {
            Files.Close(File);
            Link.Close();
        }
    }

    /// <summary>
    /// Opening and creating a named segment. One kernel lock does four jobs: each handle keeps one more open file description, used
    /// for nothing but locks (a mapping or a sent descriptor would keep its locks alive after death). Byte 0 shared: in use. Byte 1
    /// exclusive: I am the producer; of a listener: I listen. Byte 2 exclusive: I am the consumer. The kernel takes them away
    /// however a process ends.
    /// </summary>
    /// <remarks>
    /// Whoever holds byte 0 exclusively, for a moment, is alone with the file and may decide to unlink the name: the last one out, a
    /// creator over a dead segment, and `ramway clean`. Whoever meets that lock starts over.
    /// </remarks>
    internal sealed partial class Named
    {
        internal const long ByteInUse = 0;
        internal const long ByteProducer = 1;
        internal const long ByteConsumer = 2;
        internal const long ByteListener = 1;
        /// <summary>Regions have none.</summary>
        internal const long NoRole = -1;

        // How long races with others (a segment that is just going away) are retried at least.
        private static readonly TimeSpan RaceTimeout = TimeSpan.FromSeconds(1);
        private const double PauseFirst = 0.1;
        private const double PauseMax = 10;

        private readonly string _name;
        private readonly How _how;
        // What an existing segment must be.
        private readonly SegmentKind _kind;
        // What to make; null only for How.Open.
        private readonly Spec? _spec;
        // The byte to lock exclusively, or NoRole.
        private readonly long _roleByte;
        // Read-only handles take no role and create nothing.
        private readonly bool _readOnly;
        private readonly SegmentOptions _options;
        // Asked about an existing segment before it is locked: an exception keeps it untouched.
        private readonly Action<Header>? _check;
        // A segment whose role is taken, kept between attempts. With its byte 0 held, nobody is the last one out: if the role's
        // holder goes, its ring is still there to be taken over. Letting go between attempts would make us the last one out of a
        // ring whose holder died just then, and remove what we were waiting for.
        private OpenSegment? _waiting;

        internal Named(string name, How how, SegmentKind kind, Spec? spec, long roleByte, bool readOnly, SegmentOptions options,
            Action<Header>? check = null)
        {
            _name = name;
            _how = how;
            _kind = kind;
            _spec = spec;
            _roleByte = roleByte;
            _readOnly = readOnly;
            _options = options;
            _check = check;
        }

        /// <summary>
        /// Creates or opens the segment and locks it. It blocks only as the options' Timeout says, and up to a second against others
        /// who are just creating or removing the same name.
        /// </summary>
        internal OpenSegment Open()
        {
            long start = Clock.Nanoseconds;
            double pause = PauseFirst;
            var birth = new Birth();
            try
            {
                for (;;)
                {
                    try
                    {
                        return Attempt(birth);
                    }
                    catch (Again again)
                    {
                        bool forever = _options.Timeout == Timeout.InfiniteTimeSpan;
                        TimeSpan limit = again.Race && _options.Timeout < RaceTimeout && !forever ? RaceTimeout : _options.Timeout;
                        double left = limit.TotalMilliseconds - (Clock.Nanoseconds - start) / 1e6;
                        if (!forever && left <= 0)
                        {
                            throw About(again.Error);
                        }
                        Pause(forever ? pause : Math.Min(pause, left));
                        pause = Math.Min(2 * pause, PauseMax);
                    }
                }
            }
            catch (RamwayException e)
            {
                throw About(e);
            }
            finally
            {
                StopWaiting();
                birth.Drop();
            }
        }

        private RamwayException About(RamwayException e) =>
            Errors.About(e, _how.Verb() + " the " + Layout.NameOf(_kind), _name);

        /// <summary>Sleeps so many milliseconds; the runtime's own sleep knows whole ones only.</summary>
        private static void Pause(double milliseconds)
        {
            if (milliseconds < 1)
            {
                Futex.Sleep((long)(milliseconds * 1e6) + 1);
            }
            else
            {
                Thread.Sleep((int)milliseconds);
            }
        }

        private OpenSegment Attempt(Birth birth)
        {
            SegmentName name;
            try
            {
                name = SegmentName.Resolve(_name, _how != How.Open);
            }
            catch (RamwayException e) when (_how == How.Open && e.Kind == ErrorKind.NotFound)
            {
                throw new Again(e, absent: true);
            }
            using (name)
            {
                if (_how == How.Create)
                {
                    return CreateOnce(name, birth);
                }
                try
                {
                    return OpenOnce(name);
                }
                catch (Again again) when (_how == How.OpenOrCreate && again.Absent)
                {
                }
                try
                {
                    return CreateOnce(name, birth);
                }
                catch (RamwayException e) when (e.Kind == ErrorKind.AlreadyExists)
                {
                    // Somebody was faster: what they made is to be opened.
                    throw new Again(e, race: true);
                }
            }
        }

        private OpenSegment OpenOnce(SegmentName name)
        {
            if (_waiting != null)
            {
                if (LeadsTo(name.Dir, name.File, _waiting.Link.Id))
                {
                    return TakeRole(_waiting);
                }
                StopWaiting();
                throw Again.Raced("the name changed hands while its role was waited for");
            }
            int file = OpenRegular(name, !_readOnly, out Stat stat);
            if (file < 0)
            {
                throw Again.Missing("no segment has the name '" + name.Path + "': create it first, or check RAMWAY_DIR");
            }
            OpenSegment s;
            try
            {
                s = LockExisting(name, file, stat);
            }
            catch
            {
                Files.Close(file);
                throw;
            }
            return TakeRole(s);
        }

        /// <summary>
        /// Locks the role's byte of a segment in use. Where it is taken, the segment waits for the next attempt.
        /// </summary>
        private OpenSegment TakeRole(OpenSegment s)
        {
            _waiting = s;
            if (_roleByte != NoRole)
            {
                s.Link.TakeRole(_roleByte, _kind);
            }
            _waiting = null;
            return s;
        }

        /// <summary>Releases a segment whose role was taken.</summary>
        private void StopWaiting()
        {
            OpenSegment? s = _waiting;
            _waiting = null;
            s?.Drop();
        }

        /// <summary>Judges an open file and locks byte 0, shared. On an exception the file stays the caller's.</summary>
        private OpenSegment LockExisting(SegmentName name, int file, in Stat stat)
        {
            CheckFileSystem(file, _options.AllowDisk);
            // The header is written before the name exists and never after, so it can be judged without a lock.
            byte[] page = ReadPage(file, out ulong size);
            Header h = Header.Check(page, size);
            if (h.Kind != _kind)
            {
                throw Errors.Fail(ErrorKind.InvalidArgument, "this is a " + Layout.NameOf(h.Kind) + ", not a " + Layout.NameOf(_kind));
            }
            if (h.OfAnotherBoot)
            {
                throw Again.Missing("the segment '" + name.Path + "' is stale: it was left by another boot; creating starts anew");
            }
            _check?.Invoke(h);
            NamedLink? link = NamedLink.Open(name, stat, _readOnly);
            if (link == null)
            {
                throw Again.Raced("the name changed hands while it was opened");
            }
            try
            {
                link.Use(name);
            }
            catch
            {
                link.Close();
                throw;
            }
            return new OpenSegment(file, h, link);
        }
    }
}
