package dev.ramway;

/**
 * What is known of the peer, and the end of a stream: when the peer counts as closed or dead (ABI.md, section 8). This is the only
 * place that decides it: for calls that send and receive, whether they wait or not, for callbacks, and for a wait for a peer.
 *
 * @param line the address of the peer's role line
 * @param isFinal no successor can come: the peer was there when this end was made, also while its epoch is 0
 * @param delivered on a named ring, the epoch whose close was delivered to an earlier holder of this role, or 0. It ends nothing
 *     again
 * @param link says whether somebody holds the peer's role, and whether the segment still has its name
 * @param me this end's role
 */
record PeerState(long line, boolean isFinal, int delivered, Link link, Role me) {
    /** How a peer ends. */
    enum Reason { CLOSED, DEAD, NAME_GONE }

    /**
     * The end of a peer.
     *
     * @param epoch is over: if the peer that ended is a successor of that epoch, the epoch's own peer has ended as well; 0 where
     *     the name is gone
     */
    record End(Reason reason, int epoch) {}

    /** The peer of an attachment, before it is announced. The addresses are those of this role's line and the peer's. */
    static PeerState of(Attachment a, long mine, long peer) {
        PeerState state = new PeerState(peer, a.link.isFinal(), 0, a.link, a.role);
        int closed = a.role == Role.CONSUMER ? state.closedEpoch() : 0;
        if (closed == 0 || closed != Words.getIntAcquire(mine + Facts.OFF_ROLE_CLOSE_SEEN)) {
            return state;
        }
        return new PeerState(peer, state.isFinal, closed, a.link, a.role);
    }

    /**
     * How the peer has ended, or null. What was committed before the end is visible to a caller that checks after this has
     * returned.
     *
     * @param askKernel whether to spend system calls on whether the peer lives
     */
    End end(boolean askKernel) {
        int epoch = epoch();
        if (isClosed(epoch)) {
            return new End(Reason.CLOSED, epoch);
        }
        if (!askKernel) {
            return null;
        }
        if (link.vanished()) {
            return new End(Reason.NAME_GONE, 0);
        }
        if (!came(epoch) || isAlive()) {
            return null;
        }
        // A close comes before the lock or the socket goes: so check for it once more after that was seen gone. The epoch too: the
        // peer may have attached after the first load.
        epoch = epoch();
        if (isClosed(epoch)) {
            return new End(Reason.CLOSED, epoch);
        }
        // And a successor takes the lock before it clears the flag of that close.
        return isAlive() ? null : new End(Reason.DEAD, epoch);
    }

    /** How often the peer's role has been attached; 0: never. */
    int epoch() {
        // Acquire: pairs with the peer's attach. Before the flags: those of the epoch's holder or of a later one.
        return Words.getIntAcquire(line + Facts.OFF_ROLE_EPOCH);
    }

    /** The peer's flags. */
    int flags() {
        // Acquire: pairs with the peer's close; what it published before is visible.
        return Words.getIntAcquire(line + Facts.OFF_ROLE_FLAGS);
    }

    /** Whether the peer that attached last has said that it closed. */
    boolean hasClosed() {
        return (flags() & Facts.ROLE_CLOSED) != 0;
    }

    /** Whether somebody holds the peer's role. One system call. */
    boolean isAlive() {
        return link.peerAlive(me);
    }

    private boolean isClosed(int epoch) {
        return epoch != 0 && came(epoch) && hasClosed();
    }

    /** Whether there is a peer that can end. On a named ring nobody has to have come yet. */
    private boolean came(int epoch) {
        return isFinal || epoch != 0 && epoch != delivered;
    }

    /** The epoch of a peer that has closed, or 0. It is the closer's only if it is the same before and after its flag. */
    int closedEpoch() {
        int epoch = epoch();
        return hasClosed() && epoch() == epoch ? epoch : 0;
    }
}
