package dev.ramway;

/**
 * Tells one side that the other one lives, and releases the segment at the end. No method may be called after close; the
 * others may be called from several threads at once.
 */
interface Link {
    /** For two threads of one process: only the closed flag tells. */
    Link NONE = new Link() {
        @Override
        public boolean peerAlive(Role me) {
            return true;
        }

        @Override
        public void close() {}
    };

    /**
     * Whether the other role is held by somebody alive. A question for the slow path: it is one system call. It says yes
     * where it cannot know.
     */
    boolean peerAlive(Role me);

    /** Whether a named segment has lost its name, so that no successor can ever attach. One system call. */
    default boolean vanished() {
        return false;
    }

    /** Whether Closed and PeerDead are forever; on a named ring a successor may attach. */
    default boolean isFinal() {
        return true;
    }

    /**
     * Releases the role and closes the descriptors; on a named segment the last one out removes the name if nothing is
     * undelivered. To be called once, after the closed flag is set, the peer is woken and all is unmapped.
     */
    void close();
}
