package dev.ramway;

/** The tie of a publisher or subscriber to its segment: only an exclusive lock is a life. */
record TopicLink(SegmentLink link) implements Link {
    @Override
    public boolean peerAlive(Role me) {
        return link.livesAt(Facts.BYTE_PUBLISHER);
    }

    @Override
    public boolean vanished() {
        return link.vanished();
    }

    @Override
    public boolean isFinal() {
        return false;
    }

    @Override
    public void close() {
        link.close();
    }
}
