package dev.ramway;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Objects;
import java.util.OptionalLong;

/**
 * What sending needs whatever the frames are: a {@link Sender} adds a ring's (ABI.md, section 5), a {@link Publisher} a topic's
 * (section 19).
 */
abstract sealed class Producer extends RingEnd permits SendingEnd {
    /** The end of the last committed frame. Invariant: published <= tail <= limit, wrapping. */
    long tail;
    /** What the shared word holds: what was flushed. */
    long published;
    /** Up to here this side may write. */
    long limit;
    final long longest;
    /** What a wait is for, in bytes. */
    long need;
    /** The tail at which a slot is open; any other value says that none is. */
    private long slotAt = Facts.NO_POSITION;
    private volatile boolean abandoned;

    Producer(Attachment a, Options options, long mine, long peer) {
        super(a, options, mine, peer);
        longest = maxMessageLength();
    }

    /** Makes what was written a message, not yet visible to the other side. */
    abstract void commit(long length, int typeId, long tag);

    /** Makes everything committed visible, and wakes the other side if it sleeps. */
    abstract void flushNow();

    /** Whether the peer has changed its flags since they were acted upon. */
    abstract boolean hasPeerChanged();

    /** The tag of the last message that is visible; empty before the first. */
    abstract OptionalLong lastTagNow();

    /** Sends an array, after a wait for room of up to {@code nanos}. */
    final void put(int typeId, long tag, byte[] data, long nanos) throws InterruptedException {
        int length = data.length;
        Holder h = enter();
        if (!fits(typeId, length)) {
            makeRoom(h, typeId, length, nanos);
        }
        Words.copyIn(data, 0, payload(), length);
        send(h, typeId, tag, length);
    }

    /** Sends an array, or gives false. */
    final boolean putNow(int typeId, long tag, byte[] data) {
        int length = data.length;
        Holder h = enter();
        if (!fits(typeId, length) && !makeRoomNow(h, typeId, length)) {
            return false;
        }
        Words.copyIn(data, 0, payload(), length);
        send(h, typeId, tag, length);
        return true;
    }

    private void send(Holder h, int typeId, long tag, long length) {
        commit(length, typeId, tag);
        flushNow();
        leave(h);
    }

    /**
     * Sends a frame of RPC, or gives false where there is no room now.
     *
     * @param header null for none; else metadata and body follow it, each from a multiple of {@link Facts#RPC_HEADER}
     */
    final boolean putNow(int typeId, long tag, byte[] header, byte[] meta, byte[] body) {
        long length = RpcFrames.length(header, meta, body);
        Holder h = enter();
        if (!fits(0, length) && !makeRoomNow(h, 0, length)) {
            return false;
        }
        long to = payload();
        if (header != null) {
            Words.copyIn(header, 0, to, header.length);
            to += header.length;
        }
        if (meta.length > 0) {
            Words.copyIn(meta, 0, to, meta.length);
            int padding = RpcFrames.padding(meta.length);
            Words.copyIn(RpcFrames.ZEROS, 0, to + meta.length, padding);
            to += meta.length + padding;
        }
        Words.copyIn(body, 0, to, body.length);
        send(h, typeId, tag, length);
        return true;
    }

    /** Sends memory, after a wait for room of up to {@code nanos}. */
    final void put(int typeId, long tag, MemorySegment data, long nanos) throws InterruptedException {
        long length = data.byteSize();
        Holder h = enter();
        if (!fits(typeId, length)) {
            makeRoom(h, typeId, length, nanos);
        }
        copy(h, data, 0, length);
        send(h, typeId, tag, length);
    }

    /** Sends memory, or gives false. */
    final boolean putNow(int typeId, long tag, MemorySegment data) {
        long length = data.byteSize();
        Holder h = enter();
        if (!fits(typeId, length) && !makeRoomNow(h, typeId, length)) {
            return false;
        }
        copy(h, data, 0, length);
        send(h, typeId, tag, length);
        return true;
    }

    /** Copies what may not be readable: closed, or another thread's. Then this was not sent, and the handle is as before. */
    private void copy(Holder h, MemorySegment from, long at, long length) {
        boolean done = false;
        try {
            Words.copyIn(from, payload() + at, length);
            done = true;
        } finally {
            if (!done) {
                leave(h);
            }
        }
    }

    /** Whether a payload can be written right now: the peer's flags are as last acted upon, and there is room as last seen. */
    private boolean fits(int typeId, long length) {
        return length <= longest && frameSize(length) <= limit - tail && isUsers(typeId) && !hasPeerChanged();
    }

    static boolean isUsers(int typeId) {
        return Integer.compareUnsigned(typeId, Ring.RESERVED_TYPE_IDS) < 0;
    }

    private boolean makeRoomNow(Holder h, int typeId, long length) {
        try {
            return makeRoom(h, typeId, length, NOW);
        } catch (InterruptedException e) {
            throw new AssertionError("a call that does not wait was interrupted", e);
        }
    }

    /** What there is to do where {@link #fits} said no. False, for {@link #NOW}: full. It leaves unless there is room. */
    private boolean makeRoom(Holder h, int typeId, long length, long nanos) throws InterruptedException {
        boolean room = false;
        try {
            checkMessage(typeId, length);
            need = frameSize(length);
            room = ready();
            if (!room) {
                flushNow();
                if (nanos != NOW) {
                    await(nanos);
                }
                room = nanos != NOW || isReadyNow();
            }
            return room;
        } finally {
            if (!room) {
                leave(h);
            }
        }
    }

    /** Refuses a message that can never be sent. */
    private void checkMessage(int typeId, long length) {
        if (!isUsers(typeId)) {
            throw reserved(typeId);
        }
        if (length < 0) {
            throw fail(ErrorKind.INVALID_ARGUMENT, "a message of %d bytes: expected 0 or more", length);
        }
        if (hasPeerChanged()) {
            peerChanged();
            if (dead != null) {
                throw fail(dead);
            }
        }
        if (length > longest) {
            throw fail(ErrorKind.TOO_LARGE, "a message of %d bytes can never fit: this %s of %d bytes takes at most %d; create "
                    + "it with a larger capacity or cut the message", length, kind(), capacity, longest);
        }
    }

    final RamwayException reserved(int typeId) {
        return fail(ErrorKind.INVALID_ARGUMENT, "type id %#x is Ramway's own: applications use ids below %#x", typeId,
                Ring.RESERVED_TYPE_IDS);
    }

    /** Where the next frame's payload goes: inside the mirrored 2 * capacity bytes, and nobody else's before it is published. */
    private long payload() {
        return data + (tail & mask) + header();
    }

    /** A slot, after a wait for room of up to {@code nanos}. */
    final Slot openSlot(int length, long nanos) throws InterruptedException {
        Holder h = enter();
        if (length < 0 || !fits(0, length)) {
            makeRoom(h, 0, length, nanos);
        }
        return handOut(h, length);
    }

    /** A slot, or null if the ring is full. */
    final Slot openSlotNow(int length) {
        Holder h = enter();
        if ((length < 0 || !fits(0, length)) && !makeRoomNow(h, 0, length)) {
            return null;
        }
        return handOut(h, length);
    }

    private Slot handOut(Holder h, int length) {
        slotAt = tail;
        return new Slot(this, h, (tail & mask) + header(), length);
    }

    @Override
    final boolean isOut() {
        return slotAt == tail;
    }

    @Override
    final RamwayException busy() {
        return fail(ErrorKind.BUSY, "a slot of this sender is open: commit or close it first");
    }

    /** Ends a slot by a commit. */
    final void commitSlot(Holder h, long length, int typeId, long tag, boolean flush) {
        if (current() != h) {
            giveBackSlowly(h, () -> {
                if (dead != null || abandoned) {
                    slotAt = Facts.NO_POSITION;
                } else {
                    // If the handle is being closed, the end of that flushes.
                    commit(length, typeId, tag);
                    if (flush && !isClosed()) {
                        flushNow();
                    }
                }
            });
            if (dead != null) {
                throw fail(dead);
            }
            return;
        }
        commit(length, typeId, tag);
        if (flush) {
            flushNow();
        }
        leave(h);
    }

    /** Ends a slot without one. */
    final void abortSlot(Holder h) {
        if (current() != h) {
            giveBackSlowly(h, () -> slotAt = Facts.NO_POSITION);
            return;
        }
        slotAt = Facts.NO_POSITION;
        leave(h);
    }

    /** How many were sent: fewer where one could not be, unless it is the first. */
    final int putAll(int typeId, long tag, List<byte[]> messages, long nanos) throws InterruptedException {
        // A copy: the list's own code must not run inside the call guard, where it could send.
        byte[][] all = messages.toArray(new byte[0][]);
        for (int i = 0; i < all.length; i++) {
            Objects.requireNonNull(all[i], "an element of messages");
        }
        long start = System.nanoTime();
        int sent = 0;
        Holder h = enter();
        boolean entered = true;
        try {
            for (byte[] message : all) {
                int length = message.length;
                if (!fits(typeId, length)) {
                    // What comes before it is sent in any case.
                    flushNow();
                    // Where it throws, it has left.
                    entered = false;
                    makeRoom(h, typeId, length, nanos == FOREVER ? FOREVER : Math.max(0, nanos - (System.nanoTime() - start)));
                    entered = true;
                }
                Words.copyIn(message, 0, payload(), length);
                commit(length, typeId, tag);
                sent++;
            }
        } catch (RamwayException e) {
            if (sent == 0) {
                throw e;
            }
            // The next call meets it.
        } catch (InterruptedException e) {
            if (sent == 0) {
                throw e;
            }
            Thread.currentThread().interrupt();
        } finally {
            if (entered) {
                if (dead == null) {
                    flushNow();
                }
                leave(h);
            }
        }
        return sent;
    }

    final void gather(int typeId, long tag, MemorySegment... parts) throws InterruptedException {
        // A copy: what is measured here and what is written below must be the same, also where another thread has the array.
        MemorySegment[] pieces = parts.clone();
        long length = 0;
        for (MemorySegment piece : pieces) {
            // Saturates, and is too large then.
            length = piece.byteSize() > Long.MAX_VALUE - length ? Long.MAX_VALUE : length + piece.byteSize();
        }
        Holder h = enter();
        if (!fits(typeId, length)) {
            makeRoom(h, typeId, length, FOREVER);
        }
        long at = 0;
        for (MemorySegment piece : pieces) {
            copy(h, piece, at, piece.byteSize());
            at += piece.byteSize();
        }
        commit(length, typeId, tag);
        flushNow();
        leave(h);
    }

    final void flushAll() {
        Holder own = current();
        if (own.thread == Thread.currentThread() && own.inside != 0 && isOut()) {
            flushNow();
            return;
        }
        Holder h = enter();
        flushNow();
        leave(h);
    }

    final OptionalLong tagAtTail() {
        return ask(this::lastTagNow, OptionalLong.empty());
    }

    final Registration whenRoom(int length, Runnable callback) {
        Holder h = enter();
        try {
            if (length < 0 || length > longest) {
                throw fail(ErrorKind.TOO_LARGE, "a message of %d bytes can never fit: this %s takes at most %d", length, kind(), longest);
            }
            need = frameSize(length);
            flushNow();
            return waiter.whenReady(callback);
        } finally {
            leave(h);
        }
    }

    final void giveUp() {
        abandoned = true;
        shut();
    }

    @Override
    final void beforeClose() {
        if (dead == null) {
            flushNow();
        }
        if (!abandoned || isPair) {
            announceClose();
        }
    }
}
