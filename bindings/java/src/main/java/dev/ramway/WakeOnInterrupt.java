package dev.ramway;

import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.spi.AbstractSelectableChannel;
import java.nio.channels.spi.AbstractSelector;
import java.util.Set;

/**
 * Lets {@link Thread#interrupt} end a wait in the kernel at once: between {@link #enter} and {@link #leave} it calls
 * {@link #wakeup}, in the interrupting thread. Only a selector can ask the virtual machine for that; this one selects
 * nothing.
 */
final class WakeOnInterrupt extends AbstractSelector {
    private final Runnable wake;

    /** What wakes the waiting thread; it may be called at any time between enter and leave, and must not block. */
    WakeOnInterrupt(Runnable wake) {
        super(null);
        this.wake = wake;
    }

    /** A thread that is interrupted already is woken here. */
    void enter() {
        begin();
    }

    void leave() {
        end();
    }

    @Override
    public Selector wakeup() {
        wake.run();
        return this;
    }

    @Override
    protected void implCloseSelector() {}

    @Override
    protected SelectionKey register(AbstractSelectableChannel channel, int operations, Object attachment) {
        throw new UnsupportedOperationException();
    }

    @Override
    public Set<SelectionKey> keys() {
        return Set.of();
    }

    @Override
    public Set<SelectionKey> selectedKeys() {
        return Set.of();
    }

    @Override
    public int selectNow() {
        return 0;
    }

    @Override
    public int select(long timeout) {
        return 0;
    }

    @Override
    public int select() {
        return 0;
    }
}
