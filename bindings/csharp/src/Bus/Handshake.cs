using System;
using System.Buffers.Binary;
using System.Collections.Generic;
using System.Linq;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>How far a message has arrived.</summary>
    internal enum Arrival
    {
        Partial,
        Whole,
        HungUp,
    }

    /// <summary>
    /// How two processes agree on a bus: section 12 of docs/ABI.md. Nothing here waits. What the other side does wrong is an
    /// error that is returned and not thrown: a listener meets it every day.
    /// </summary>
    internal static class Handshake
    {
        /// <summary>Writes a message. The status counts in REFUSE and ACK (0: success), the size in WELCOME; they are 0 in all
        /// others. Features are those that HELLO and WELCOME require; the last is WELCOME's on an RPC's bus.</summary>
        internal static void Encode(Span<byte> to, HandshakeType type, ErrorKind status, ulong size, uint features = 0,
            uint maxInFlight = 0)
        {
            to.Clear();
            BinaryPrimitives.WriteUInt64LittleEndian(to, Facts.HandshakeMagic);
            BinaryPrimitives.WriteUInt32LittleEndian(to.Slice(Facts.HandshakeOffByteOrder), Facts.ByteOrder);
            BinaryPrimitives.WriteUInt16LittleEndian(to.Slice(Facts.HandshakeOffMajor), Facts.HandshakeMajor);
            BinaryPrimitives.WriteUInt16LittleEndian(to.Slice(Facts.HandshakeOffMinor), Facts.HandshakeMinor);
            BinaryPrimitives.WriteUInt32LittleEndian(to.Slice(Facts.HandshakeOffType), (uint)type);
            BinaryPrimitives.WriteUInt32LittleEndian(to.Slice(Facts.HandshakeOffStatus), (uint)status);
            BinaryPrimitives.WriteUInt64LittleEndian(to.Slice(Facts.HandshakeOffSize), size);
            BinaryPrimitives.WriteUInt32LittleEndian(to.Slice(Facts.HandshakeOffFeaturesRequired), features);
            BinaryPrimitives.WriteUInt32LittleEndian(to.Slice(Facts.HandshakeOffMaxInFlight), maxInFlight);
        }

        /// <summary>
        /// Reads a message that must be of this type and require exactly these features, its status and size. A REFUSE in
        /// WELCOME's place is the error that it carries, whatever its version: the fields up to the status stay where they are
        /// forever.
        /// </summary>
        internal static RamwayException? Decode(ReadOnlySpan<byte> from, HandshakeType expected, out uint status, out ulong size,
            uint required = Facts.HandshakeFeatures)
        {
            status = 0;
            size = 0;
            if (BinaryPrimitives.ReadUInt64LittleEndian(from) != Facts.HandshakeMagic)
            {
                return Errors.Fail(ErrorKind.AbiMismatch, "the other side does not speak Ramway's bus handshake");
            }
            if (BinaryPrimitives.ReadUInt32LittleEndian(from.Slice(Facts.HandshakeOffByteOrder)) != Facts.ByteOrder)
            {
                return Errors.Fail(ErrorKind.AbiMismatch, "the other side has another byte order");
            }
            HandshakeType type = (HandshakeType)BinaryPrimitives.ReadUInt32LittleEndian(from.Slice(Facts.HandshakeOffType));
            status = BinaryPrimitives.ReadUInt32LittleEndian(from.Slice(Facts.HandshakeOffStatus));
            if (type == HandshakeType.Refuse && expected == HandshakeType.Welcome)
            {
                return StatusError(status, "the listener refused");
            }
            ushort major = BinaryPrimitives.ReadUInt16LittleEndian(from.Slice(Facts.HandshakeOffMajor));
            if (major != Facts.HandshakeMajor)
            {
                return Errors.Fail(ErrorKind.AbiMismatch,
                    $"the other side speaks version {major} of the handshake, this one {Facts.HandshakeMajor}");
            }
            uint features = BinaryPrimitives.ReadUInt32LittleEndian(from.Slice(Facts.HandshakeOffFeaturesRequired));
            uint unknown = features & ~required;
            if (unknown == Facts.RpcFeatures)
            {
                return Errors.Fail(ErrorKind.AbiMismatch, "the other side speaks RPC, this side is a plain bus");
            }
            if (unknown != 0)
            {
                return Errors.Fail(ErrorKind.AbiMismatch,
                    $"the other side requires features 0x{unknown:x}, which this version lacks");
            }
            if (features != required)
            {
                return Errors.Fail(ErrorKind.AbiMismatch, "the other side is a plain bus, this side speaks RPC");
            }
            if (type != expected)
            {
                return Errors.Fail(ErrorKind.Corrupt,
                    $"the other side sent a message of type {(uint)type}, expected {NameOf(expected)}");
            }
            size = BinaryPrimitives.ReadUInt64LittleEndian(from.Slice(Facts.HandshakeOffSize));
            return null;
        }

        /// <summary>The error that a status stands for; one that this version does not know is Os.</summary>
        internal static RamwayException StatusError(uint status, string who)
        {
            ErrorKind kind = (ErrorKind)status;
            if (kind < ErrorKind.NotFound || kind > ErrorKind.Lagged)
            {
                return Errors.Fail(ErrorKind.Os, $"{who} with the unknown error number {status}");
            }
            string why = kind == ErrorKind.NoSpace ? "it has no memory or descriptors left" : Errors.Summary(kind);
            return Errors.Fail(kind, $"{who}: {why} ({kind})");
        }

        internal static string NameOf(HandshakeType type) => type switch
        {
            HandshakeType.Hello => "HELLO",
            HandshakeType.Welcome => "WELCOME",
            HandshakeType.Refuse => "REFUSE",
            HandshakeType.Ack => "ACK",
            _ => "a message of unknown type",
        };

        /// <summary>Sends a message, with a descriptor unless that is negative. An error only says that the other side is gone
        /// or does not read.</summary>
        internal static RamwayException? Send(int socket, HandshakeType type, ErrorKind status, ulong size, int descriptor,
            uint features = 0, uint maxInFlight = 0)
        {
            Span<byte> message = stackalloc byte[Facts.HandshakeSize];
            Encode(message, type, status, size, features, maxInFlight);
            int result = Sockets.Send(socket, message, descriptor);
            switch (result)
            {
                case 0:
                    return null;
                case -Errno.EPIPE:
                case -Errno.ECONNRESET:
                    return Errors.Fail(ErrorKind.PeerDead, "the other side hung up before " + NameOf(type));
                default:
                    return Errors.Os(result, "sending " + NameOf(type));
            }
        }

        /// <summary>
        /// Whether the other end is a user that may take part: our own or one that was named; never the one that stands for all
        /// users without a number here.
        /// </summary>
        internal static RamwayException? CheckPeer(Credentials peer, IReadOnlyCollection<uint> others, string option)
        {
            uint own = Libc.geteuid();
            if (peer.Uid == Sockets.OverflowUid() || peer.Uid == uint.MaxValue)
            {
                return Errors.Fail(ErrorKind.PermissionDenied,
                    $"the other side's user has no number here (shown as {peer.Uid}), so nothing says who it is: run it as another user");
            }
            if (peer.Uid == own || others.Contains(peer.Uid))
            {
                return null;
            }
            return Errors.Fail(ErrorKind.PermissionDenied,
                $"the other side is user {peer.Uid}, we are user {own}; name it in {option} if it may take part");
        }
    }

    /// <summary>A message that arrives in pieces, and the descriptors that came with it.</summary>
    internal sealed class Inbox : IDisposable
    {
        private readonly byte[] bytes = new byte[Facts.HandshakeSize];

        /// <summary>The first descriptor that came; -1 if none has, or it was taken.</summary>
        private int descriptor = -1;

        /// <summary>How many came in all. Those beyond the first are closed on arrival.</summary>
        private int descriptors;

        internal int Filled { get; private set; }

        /// <summary>Takes what is there without waiting, and not one byte beyond the message.</summary>
        internal RamwayException? Fill(int socket, out Arrival arrival)
        {
            arrival = Arrival.Partial;
            while (Filled < Facts.HandshakeSize)
            {
                int result = Sockets.Receive(socket, new Span<byte>(bytes, Filled, Facts.HandshakeSize - Filled), out Received got);
                switch (result)
                {
                    case 0:
                        break;
                    case -Errno.EAGAIN:
                        return null;
                    case -Errno.ECONNRESET:
                    case -Errno.EPIPE:
                        arrival = Arrival.HungUp;
                        return null;
                    default:
                        return Errors.Os(result, "receiving the bus handshake");
                }
                descriptors += got.Descriptors.Count + (got.Truncated ? 1 : 0);
                foreach (int descriptor in got.Descriptors)
                {
                    if (this.descriptor < 0)
                    {
                        this.descriptor = descriptor;
                    }
                    else
                    {
                        Files.Close(descriptor);
                    }
                }
                if (got.Bytes == 0)
                {
                    arrival = Arrival.HungUp;
                    return null;
                }
                Filled += got.Bytes;
            }
            arrival = Arrival.Whole;
            return null;
        }

        /// <summary>How many calls WELCOME lets an RPC's client have in flight, of a message that is whole.</summary>
        internal uint MaxInFlight => BinaryPrimitives.ReadUInt32LittleEndian(bytes.AsSpan(Facts.HandshakeOffMaxInFlight));

        /// <summary>Decodes what is whole, if it requires exactly these features and came with exactly this many
        /// descriptors.</summary>
        internal RamwayException? Message(HandshakeType expected, int expectedDescriptors, out uint status, out ulong size,
            uint required = Facts.HandshakeFeatures)
        {
            RamwayException? error = Handshake.Decode(bytes, expected, out status, out size, required);
            if (error == null && descriptors != expectedDescriptors)
            {
                return Errors.Fail(ErrorKind.Corrupt, $"{Handshake.NameOf(expected)} came with {descriptors} descriptors, " +
                    $"expected {expectedDescriptors}; they are closed");
            }
            if (error == null && expectedDescriptors == 1 && descriptor < 0)
            {
                // The kernel had one for us and could not install it.
                return Errors.Os(Errno.EMFILE, "receiving the descriptor of WELCOME");
            }
            return error;
        }

        /// <summary>Hands the descriptor over: the caller closes it.</summary>
        internal int TakeDescriptor()
        {
            int taken = descriptor;
            descriptor = -1;
            return taken;
        }

        /// <summary>Begins the next message.</summary>
        internal void Reset()
        {
            Dispose();
            Filled = 0;
            descriptors = 0;
        }

        /// <summary>Closes a descriptor that nobody took.</summary>
        public void Dispose()
        {
            if (descriptor >= 0)
            {
                Files.Close(TakeDescriptor());
            }
        }

        /// <summary>What to say if the other side goes before its message is whole.</summary>
        internal RamwayException HungUp(HandshakeType expected) => Errors.Fail(ErrorKind.PeerDead,
            $"the other side hung up after {Filled} of the {Facts.HandshakeSize} bytes of {Handshake.NameOf(expected)}");

        /// <summary>What to say if its time is over before.</summary>
        internal RamwayException Silent(HandshakeType expected) => Errors.Fail(ErrorKind.TimedOut,
            $"only {Filled} of the {Facts.HandshakeSize} bytes of {Handshake.NameOf(expected)} came before the deadline");
    }
}
