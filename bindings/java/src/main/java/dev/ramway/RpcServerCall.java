package dev.ramway;

import java.util.Iterator;

/** One call, as the server keeps it. With its connection's lock where nothing else is said. */
final class RpcServerCall implements Runnable {
    /** How far it has come. */
    enum State {
        /** It waits for a thread, and its handler has not begun. */
        QUEUED,
        /** It has a thread, or waits for one to go on. */
        RUNNING,
        /** A stream that waits for credit or room: it needs no thread. */
        WAITING,
        /** Its handler has ended; its final REPLY is published or parked. */
        ENDED
    }

    final RpcConnection connection;
    final long id;
    final int method;
    /** Unsigned; 0: one reply. */
    final int window;
    /** When its frame was taken, and its time limit from there, in ns. */
    final long start = System.nanoTime();
    final long limit;
    /** What its copies count; 0 once the handler has ended. */
    long requestBytes;
    /** Null once the handler has begun. */
    RpcRequest request;
    /** What it runs. */
    RpcServerMethods.Method handler;

    State state = State.QUEUED;
    /** How many more elements may be sent. */
    long credit;
    /** The element that waits for credit, and its metadata; null: none. */
    byte[] element;
    byte[] elementMeta;
    /** Of a stream that has begun. Its thread's own. */
    Iterator<byte[]> elements;
    /** Of the next REPLY. Its thread's own. */
    byte[] replyMeta = RpcFrames.NONE;
    /** The thread that runs its handler; null: none. */
    Thread thread;
    private volatile boolean stopped;

    RpcServerCall(RpcConnection connection, RpcFrames.Call frame, byte[] meta, byte[] body) {
        this.connection = connection;
        id = frame.id();
        method = frame.method();
        window = frame.window();
        credit = window & RpcFrames.U32_MAX;
        limit = frame.timeoutMicros() == 0 ? RingEnd.FOREVER : (frame.timeoutMicros() & RpcFrames.U32_MAX) * 1000;
        request = new RpcRequest(this, body, meta);
    }

    byte[] takeReplyMeta() {
        byte[] meta = replyMeta;
        replyMeta = RpcFrames.NONE;
        return meta;
    }

    boolean isStream() {
        return window != 0;
    }

    /** How much time it has left, in ns. */
    long left() {
        return Waiter.left(start, limit);
    }

    /** It was cancelled, its time is over, or its client is gone. Any thread may ask. */
    boolean isStopped() {
        return stopped;
    }

    void stop() {
        stopped = true;
        if (thread != null) {
            thread.interrupt();
        }
    }

    /** On a thread of the pool. */
    @Override
    public void run() {
        connection.handle(this);
    }
}
