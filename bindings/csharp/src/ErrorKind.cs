namespace Ramway
{
    /// <summary>
    /// What went wrong. The numbers are part of the format and never change; every language has the same ones.
    /// </summary>
    public enum ErrorKind
    {
        /// <summary>Nothing has this name.</summary>
        NotFound = 1,
        /// <summary>The name is taken: by a live segment, by undelivered messages, or by something that is not Ramway's.</summary>
        AlreadyExists = 2,
        /// <summary>An argument cannot be right; the text says which and what was expected.</summary>
        InvalidArgument = 3,
        /// <summary>The role, slot or view is taken.</summary>
        Busy = 4,
        /// <summary>The ring has no room for this message now.</summary>
        Full = 5,
        /// <summary>The ring has no message now.</summary>
        Empty = 6,
        /// <summary>The message can never fit into this ring.</summary>
        TooLarge = 7,
        /// <summary>The deadline passed.</summary>
        TimedOut = 8,
        /// <summary>The peer closed, and everything that it had sent has been received; or the name has vanished.</summary>
        Closed = 9,
        /// <summary>This handle is closed.</summary>
        Detached = 10,
        /// <summary>The peer's process died without closing, and everything that it had committed has been received.</summary>
        PeerDead = 11,
        /// <summary>The shared memory holds what no correct peer writes. The handle stays dead.</summary>
        Corrupt = 12,
        /// <summary>Not Ramway's, or of a version, byte order or page size that this side cannot use.</summary>
        AbiMismatch = 13,
        /// <summary>The operating system, or a check of the peer's user, refuses.</summary>
        PermissionDenied = 14,
        /// <summary>There is not enough memory or file system space.</summary>
        NoSpace = 15,
        /// <summary>The wait was called off.</summary>
        Interrupted = 16,
        /// <summary>This kernel, file system or setting cannot do what was asked.</summary>
        Unsupported = 17,
        /// <summary>Any other error of the operating system: <see cref="RamwayException.Errno"/> has its number.</summary>
        Os = 18,
    }
}
