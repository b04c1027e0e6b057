using System;
using System.Runtime.CompilerServices;
using System.Threading;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>What <see cref="Sender"/> and <see cref="Receiver"/> have in common.</summary>
    /// <remarks>
    /// One thread at a time may use a handle, and may hand it to another; a second one at the same time is an
    /// <see cref="InvalidOperationException"/> where it is noticed. <see cref="Dispose()"/>, <see cref="PeerAlive"/> and
    /// <see cref="PeerEpoch"/> are safe from any thread.
    /// </remarks>
    // The endpoint of the skeleton: an end of a ring or topic adds its positions and its own rule, and nothing else. How a side says
    // that it is there, sleeps or goes, and how it wakes the other one, are virtual: a ring's two roles do it in one way, a topic's
    // publisher and its subscribers in one each. They are called where a call waits, begins or ends, never on the way of a message.
    public abstract unsafe partial class RingEnd : IDisposable
    {
        /// <summary>
        /// "Not yet": what a check gives that finds nothing now. null is success, anything else an error. It is compared and never
        /// thrown.
        /// </summary>
        private protected static readonly RamwayException NotNow = Errors.Fail(ErrorKind.Empty, null);

        // The fields belong to the one thread inside the guard, but for those that say otherwise.
        private protected CallGuard guard;
        /// <summary>Publish without a fence, because the peer makes up for it with a membarrier when it goes to sleep.</summary>
        private protected bool fenceFree;
        /// <summary>This process is registered with membarrier, and it worked.</summary>
        private protected bool membarrierCapable;
        /// <summary>An end is forever (bus, pair). On a named ring a successor may attach.</summary>
        private protected readonly bool final;
        /// <summary>The peer's flags as last acted upon.</summary>
        private protected uint peerFlags;
        /// <summary>What this handle is dead of, if it is.</summary>
        private protected ErrorKind dead;
        /// <summary>This role's line; null in a topic's subscriber, which has a slot. What the peer says of itself.</summary>
        private protected RoleLine* mine, peer;
        /// <summary>The word that this side sleeps on, and the one that the peer sleeps on. This side's flags.</summary>
        private protected uint* ownWait, peerWait, ownFlags;
        /// <summary>Null in a topic's end.</summary>
        private protected RingBlock* ring;
        private protected byte* data;
        /// <summary>data and a header's length: where the payload of a frame at position 0 begins.</summary>
        private protected byte* payloads;
        private protected readonly ulong capacity;
        /// <summary>capacity - 1 and align - 1.</summary>
        private protected readonly ulong wrap, alignMask;
        /// <summary>The bytes before each payload, and the same with alignMask: what a frame's size is rounded up from.</summary>
        private protected readonly ulong header, frameExtra;
        private protected readonly uint maxLength;
        private protected readonly uint align;
        private readonly Role role;
        private readonly string? name;
        private uint epoch;
        /// <summary>The peer's epoch whose close an earlier holder of this role has met, or 0: that one ends nothing again.</summary>
        private protected uint delivered;
        /// <summary>
        /// The last epoch of the peer that is known to be over. Its successor takes the role's lock first and an epoch of its own
        /// next: in between it must not pass for the one that closed or died.
        /// </summary>
        private uint gone;

        // Held by a close, by what can be asked from any thread, and by a release that comes after a close. Never taken by a
        // call that is inside the guard.
        private readonly object closing = new object();
        /// <summary>Under the lock: closed while something was out, whose release finishes it.</summary>
        private bool deferred;
        /// <summary>Under the lock: nothing is mapped any more.</summary>
        private bool finished;
        private protected Attachment? at;

        /// <summary>Prepares the handle; the positions are checked next, and <see cref="Announce"/> makes it known.</summary>
        private protected RingEnd(Attachment attachment, Role role, RingOptions options)
            : this(attachment, role, Facts.FrameHeader, Layout.MaxMessageLength(attachment.Capacity), options.Membarrier)
        {
            ring = attachment.Ring;
            mine = role == Role.Producer ? &ring->Producer : &ring->Consumer;
            peer = role == Role.Producer ? &ring->Consumer : &ring->Producer;
            ownWait = &mine->Wait;
            ownFlags = &mine->Flags;
            peerWait = &peer->Wait;
            wait = new Waiter(options.Wait, ownWait);
        }

        /// <summary>The same for a topic's end: the publisher, or a subscriber, whose words follow from its slot.</summary>
        private protected RingEnd(Attachment attachment, Role role, TopicOptions options)
            : this(attachment, role, Facts.TopicFrameHeader, Layout.MaxTopicMessageLength(attachment.Capacity), options.Membarrier)
        {
            SubscribersArea* area = attachment.Area;
            if (role == Role.Producer)
            {
                mine = &attachment.Topic->Publisher;
                // Nobody: what a subscriber says of itself is in its slot.
                peer = Nobody;
                ownWait = &area->Wait;
                ownFlags = &mine->Flags;
                peerWait = &Nobody->Wait;
                wait = new Waiter(options.Wait, ownWait);
            }
            else
            {
                peer = &attachment.Topic->Publisher;
                ownWait = (uint*)&area->Word;
                // Of those that read, the publisher waits for a reliable one only.
                peerWait = options.Policy == Policy.Reliable ? &area->Wait : &Nobody->Wait;
                wait = new Waiter(options.Wait, ownWait, options.ReadOnly ? Waiter.Sharing.ReadOnly : Waiter.Sharing.Counted);
            }
        }

        private RingEnd(Attachment attachment, Role role, ulong header, uint maxLength, bool membarrier)
        {
            this.role = role;
            name = string.IsNullOrEmpty(attachment.Name) ? null : attachment.Name;
            data = attachment.Data;
            capacity = attachment.Capacity;
            align = attachment.Align;
            wrap = capacity - 1;
            alignMask = (ulong)align - 1;
            this.header = header;
            frameExtra = header + alignMask;
            payloads = data + header;
            this.maxLength = maxLength;
            final = attachment.Link.Final;
            membarrierCapable = membarrier && Membarrier.IsAvailable;
            kernelAsked = Clock.Nanoseconds;
            // Set by the other two.
            wait = null!;
        }

        /// <summary>A role's line that nobody writes: all zero, for as long as the process runs.</summary>
        private static readonly RoleLine* Nobody = (RoleLine*)Native.Zeroed(sizeof(RoleLine));

        /// <summary>Makes a handle over an attachment, which is released if that fails.</summary>
        private protected static T Over<T, TOptions>(Attachment attachment, TOptions options, Func<Attachment, TOptions, T> make)
        {
            try
            {
                return make(attachment, options);
            }
            catch
            {
                attachment.Release();
                throw;
            }
        }

        /// <summary>
        /// Says "I am here" in this role's words, and wakes the peer so that it checks (ABI.md, section 6). The attachment is this
        /// handle's from here on.
        /// </summary>
        private protected void Announce(Attachment attachment)
        {
            epoch = AnnounceSelf();
            Interlocked.MemoryBarrier();
            WakePeer();
            at = attachment;
            PeerChanged();
        }

        /// <summary>Makes this side known, and gives how often its role was attached.</summary>
        private protected virtual uint AnnounceSelf()
        {
            Volatile.Write(ref *ownWait, 0);
            Volatile.Write(ref mine->Flags, membarrierCapable ? Facts.RoleMembarrierCapable : 0u);
            uint next = Math.Max(unchecked(Volatile.Read(ref mine->Epoch) + 1), 1);
            // Release: a peer that sees the new epoch sees the flags of its holder.
            Volatile.Write(ref mine->Epoch, next);
            return next;
        }

        /// <summary>Says "I closed", after everything was published, and wakes the peer.</summary>
        private protected void AnnounceClose()
        {
            SayClosed();
            Interlocked.MemoryBarrier();
            WakePeer();
        }

        private protected virtual void SayClosed() =>
            Volatile.Write(ref mine->Flags, Volatile.Read(ref mine->Flags) | Facts.RoleClosed);

        /// <summary>Wakes the peer whether it waits or not.</summary>
        private protected virtual void WakePeer() => Wake(peerWait);

        /// <summary>Wakes who sleeps on a role's own word.</summary>
        private protected static void Wake(uint* word)
        {
            Volatile.Write(ref *word, 0);
            Futex.WakeAll(word);
        }

        /// <summary>
        /// Stores a position of this side's. Release: what was read or written before goes before it. Fenced unless both sides
        /// agreed that it need not be, so that the load of the peer's wait word that follows is not done before it.
        /// </summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private protected void Publish(ulong* word, ulong position)
        {
            Volatile.Write(ref *word, position);
            if (!fenceFree)
            {
                Interlocked.MemoryBarrier();
            }
        }

        /// <summary>After a publish: whether the peer sleeps or has changed its flags.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private protected bool PeerSleepsOrChanged() =>
            Volatile.Read(ref *peerWait) != 0 || Volatile.Read(ref peer->Flags) != peerFlags;

        /// <summary>
        /// Acts on that. What was agreed on just now holds for this publish too: <see cref="PeerChanged"/> fences, and the wait
        /// word is loaded once more after it.
        /// </summary>
        [MethodImpl(MethodImplOptions.NoInlining)]
        private protected void ServePeer()
        {
            PeerChanged();
            // Any value but 0 is a waiter: a hostile one costs its writer a wake-up.
            if (Volatile.Read(ref *peerWait) != 0)
            {
                WakePeer();
            }
        }

        /// <summary>
        /// Acts on the peer's flags: who fences, and, where it is final, whether a consumer has closed. A producer's close is
        /// acted on where the ring is found empty, because what it sent before is delivered first.
        /// </summary>
        private protected virtual void PeerChanged()
        {
            uint flags = Volatile.Read(ref peer->Flags);
            peerFlags = flags;
            Agree((flags & Facts.RoleMembarrierCapable) != 0);
            if (role == Role.Producer && final && (flags & Facts.RoleClosed) != 0)
            {
                Die(ErrorKind.Closed);
            }
        }

        /// <summary>Decides who fences; canMembarrier: every one that this side wakes can make up for a fence that is left out.</summary>
        private protected void Agree(bool canMembarrier)
        {
            fenceFree = Cpu.FenceFree && membarrierCapable && canMembarrier;
            // This side is the only writer of its flags.
            uint own = Volatile.Read(ref *ownFlags) & ~Facts.RoleFenceFree;
            Volatile.Write(ref *ownFlags, fenceFree ? own | Facts.RoleFenceFree : own);
            // "I am fence-free" is visible before the first publish without a fence, and a sleeper that no longer sees it can rely
            // on fences from here on.
            Interlocked.MemoryBarrier();
        }

        /// <summary>Marks the handle dead, unless it is dead already, and gives what it is dead of.</summary>
        private protected ErrorKind Die(ErrorKind kind)
        {
            if (!guard.IsDead)
            {
                dead = kind;
                guard.Die();
            }
            return dead;
        }

        /// <summary>Why the guard refused a call, which has not left yet.</summary>
        private protected RamwayException Refused() => Fail(guard.IsClosed ? ErrorKind.Detached : dead);

        /// <summary>Ends this handle for what the peer wrote.</summary>
        private protected RamwayException Corrupt() => Fail(Die(ErrorKind.Corrupt));

        /// <summary>The error of a state that the handle or the ring is in.</summary>
        private protected RamwayException Fail(ErrorKind kind) => Fail(kind, kind != ErrorKind.Corrupt ? null :
            $"the {Kind}'s positions or a frame's length are not what any correct peer writes; this handle stays dead. " +
            $"Recreate the {Kind}, and see SECURITY.md if the peer is not trusted");

        /// <summary>What this is an end of, for messages.</summary>
        private protected string Kind => header == Facts.FrameHeader ? "ring" : "topic";

        /// <summary>An error with a text about this ring.</summary>
        private protected RamwayException Fail(ErrorKind kind, string? text)
        {
            string doing = role == Role.Producer ? "sending" : "receiving";
            // A pair has no name to go on with.
            return Errors.Fail(kind, name == null ? doing : doing + (role == Role.Producer ? " to" : " from"), name, text);
        }

        /// <summary>How the ring has ended, as an error; null: it has not. See <see cref="PeerState.End"/>.</summary>
        private protected virtual RamwayException? Ended(bool askKernel)
        {
            Ending ending = new PeerState(peer, final, delivered).End(askKernel, at!.Link, role, out uint epoch);
            if (ending == Ending.NameGone)
            {
                return NameGone();
            }
            if (ending == Ending.None)
            {
                return null;
            }
            gone = epoch;
            return Fail(ending == Ending.Closed ? ErrorKind.Closed : ErrorKind.PeerDead);
        }

        private protected RamwayException NameGone() => Fail(ErrorKind.Closed, "the segment's name was removed while it was in use " +
            "(rm, or systemd's RemoveIPC): no peer can find it any more. Create it again");

        /// <summary>Records an end that is about to be returned. Gives the error that it got.</summary>
        private protected Exception? RecordEnd(Exception? e)
        {
            if (e is RamwayException end && (end.Kind == ErrorKind.Closed || end.Kind == ErrorKind.PeerDead))
            {
                if (end.Kind == ErrorKind.Closed)
                {
                    CloseMet();
                }
                if (final)
                {
                    Die(end.Kind);
                }
            }
            return e;
        }

        /// <summary>A close, or the loss of the name, is about to be returned.</summary>
        private protected virtual void CloseMet()
        {
        }

        /// <summary>
        /// Bytes of the data area. A frame takes 16 bytes more than its payload (of a topic 32), rounded up to <see cref="Align"/>.
        /// </summary>
        public long Capacity => (long)capacity;

        /// <summary>What every payload's address is a multiple of, in bytes.</summary>
        public int Align => (int)align;

        /// <summary>
        /// The longest payload that ever fits, in bytes: min(capacity - 16, 2^31 - 17), and it fits whenever the ring is empty; of a
        /// topic min(capacity / 2 - 32, 2^31 - 33).
        /// </summary>
        public int MaxMessageLength => (int)maxLength;

        /// <summary>The name or path it was opened by, or the bus's; null for a ring without a name.</summary>
        public string? Name => name;

        /// <summary>Whether this handle was closed. Safe from any thread.</summary>
        public bool IsClosed => guard.IsClosed;

        /// <summary>How often this role has been attached, this handle included; 1 is the first.</summary>
        public uint Epoch => epoch;

        /// <summary>
        /// How often the other role has been attached; 0: never yet. A change means that a successor took over. Safe from any
        /// thread. 0 once the handle is closed.
        /// </summary>
        public uint PeerEpoch
        {
            get
            {
                lock (closing)
                {
                    return finished ? 0u : EpochOfPeer;
                }
            }
        }

        private protected virtual uint EpochOfPeer => Volatile.Read(ref peer->Epoch);

        private protected virtual bool PeerLives => Volatile.Read(ref peer->Epoch) != 0 &&
            (Volatile.Read(ref peer->Flags) & Facts.RoleClosed) == 0 && at!.Link.PeerAlive(role);

        /// <summary>
        /// Whether the other role is attached and its process lives. A stopped process is alive. One system call; safe from any
        /// thread. False once the handle is closed.
        /// </summary>
        public bool PeerAlive
        {
            get
            {
                lock (closing)
                {
                    return !finished && PeerLives;
                }
            }
        }

        /// <summary>
        /// Closes the handle: the peer is told that this was all, and the role is given up. A call of another thread that waits
        /// ends with Detached. Closing twice is fine.
        /// </summary>
        public void Dispose() => ShutDown(false, false);

        /// <summary>A handle that is forgotten is closed when it is collected.</summary>
        ~RingEnd() => ShutDown(true, false);

        /// <summary>
        /// Closes. forgotten: by the finalizer, so that nobody can have anything out any more but a Span. abandoned: the peer is
        /// not told.
        /// </summary>
        private protected void ShutDown(bool forgotten, bool abandoned)
        {
            lock (closing)
            {
                if (guard.IsClosed && !((forgotten || abandoned) && deferred) || at == null)
                {
                    return;
                }
                guard.Close();
                // A forgotten handle has nobody inside.
                for (int i = 0; !forgotten && guard.IsCalling; i++)
                {
                    wait.Interrupt();
                    if (i < 50)
                    {
                        Thread.Yield();
                    }
                    else
                    {
                        Thread.Sleep(1);
                    }
                }
                if (guard.IsOut && !forgotten && !abandoned)
                {
                    deferred = true;
                    CloseBeside();
                    return;
                }
                bool wasOut = guard.IsOut;
                guard.EndAny();
                Finish(abandoned, wasOut && forgotten);
            }
        }

        /// <summary>
        /// Begins a call; false: the handle is shut. The call ends by <c>guard.Leave</c> in any case.
        /// </summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private protected bool Enter()
        {
            if (guard.IsTaken)
            {
                throw Taken();
            }
            return guard.Enter();
        }

        /// <summary>Begins a call that gives something out, and gives its ticket.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private protected uint EnterOut()
        {
            if (guard.IsTaken)
            {
                throw Taken();
            }
            return guard.EnterOut();
        }

        /// <summary>Ends a call that gives nothing out although a close may have seen it as one that does.</summary>
        private protected void LeaveEmpty()
        {
            guard.Leave();
            if (guard.IsClosed)
            {
                FinishClose();
            }
        }

        /// <summary>Whether this ticket's slot, message or batch is out.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        internal bool Holds(uint ticket) => guard.Holds(ticket);

        /// <summary>
        /// Begins a call that may be made while something is out, which it says and <see cref="LeaveBeside"/> is to be told.
        /// </summary>
        private protected bool EnterBeside()
        {
            bool isOut = guard.IsOut;
            if (guard.IsTaken && !isOut)
            {
                throw Taken();
            }
            guard.Enter();
            return isOut;
        }

        private protected void LeaveBeside(bool wasOut)
        {
            if (wasOut)
            {
                guard.LeaveOut();
            }
            else
            {
                guard.Leave();
            }
        }

        /// <summary>Why no call can begin.</summary>
        [MethodImpl(MethodImplOptions.NoInlining)]
        private protected Exception Taken()
        {
            if (!guard.IsOut)
            {
                return new InvalidOperationException("ramway: a sender or receiver is used by two threads at once, or while an " +
                    "asynchronous call of it is pending; only Dispose, PeerAlive and PeerEpoch may be called beside another call");
            }
            return guard.IsShut ? Refused() : Fail(ErrorKind.Busy, role == Role.Producer
                ? "a slot of this sender is open: commit or dispose of it first"
                : "a message or batch of this receiver is out: dispose of it first");
        }

        /// <summary>
        /// What a close tells the peer at once although something is out, with the lock held. The role and the memory stay until
        /// the end of what is out.
        /// </summary>
        private protected virtual void CloseBeside()
        {
        }

        /// <summary>After what was out has ended: a close that has waited for it goes on.</summary>
        [MethodImpl(MethodImplOptions.NoInlining)]
        private protected void FinishClose()
        {
            lock (closing)
            {
                if (deferred)
                {
                    Finish(false, false);
                }
            }
        }

        /// <summary>
        /// The end of a close, with the lock held and nobody inside the guard or on the way in. keepMapped: something may still be
        /// read by a Span that nothing takes back, in a handle that was forgotten: then its addresses stay, and only the role goes.
        /// </summary>
        private void Finish(bool abandoned, bool keepMapped)
        {
            Attachment attachment = at!;
            if (!guard.IsDead)
            {
                BeforeWait();
            }
            // A pair's ends learn of an end by nothing but the flag.
            if (!abandoned || attachment.Link is NoLink)
            {
                AnnounceClose();
            }
            finished = true;
            deferred = false;
            wait.Close();
            at = null;
            ring = null;
            mine = peer = null;
            ownWait = peerWait = ownFlags = null;
            data = payloads = null;
            attachment.Release(keepMapped);
            Forget(keepMapped);
            GC.SuppressFinalize(this);
        }

        /// <summary>After the mapping is gone: what else the handle has, unless somebody may still read it.</summary>
        private protected virtual void Forget(bool keepMapped)
        {
        }

        /// <summary>What has to be visible to the peer before this side waits for it, or closes.</summary>
        private protected virtual void BeforeWait()
        {
        }

        /// <summary>For tests: what a hostile peer can write to.</summary>
        internal RingBlock* SharedForTests => ring;

        /// <summary>For tests: likewise.</summary>
        internal byte* DataForTests => data;
    }
}
