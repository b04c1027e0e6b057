package dev.ramway;

import java.util.Arrays;
import java.util.Set;

/** One side of an RPC's bus that sends whatever frames it is told to. */
final class RpcRaw implements AutoCloseable {
    final Bus bus;

    RpcRaw(Bus bus) {
        this.bus = bus;
    }

    /** A frame as it is in the ring. */
    record Frame(int typeId, long id, byte[] payload) {
        @Override
        public String toString() {
            return Integer.toHexString(typeId) + " of " + id + ": " + Arrays.toString(payload);
        }
    }

    static Frame call(long id, int method, int window, byte[] body) {
        return call(id, 0, method, window, body);
    }

    static Frame call(long id, int timeoutMicros, int method, int window, byte[] body) {
        return new Frame(Facts.TYPE_ID_CALL, id, join(RpcFrames.callHeader(timeoutMicros, 0, method, window), body));
    }

    static Frame reply(long id, RpcStatus status, byte[] body) {
        return new Frame(Facts.TYPE_ID_REPLY, id, join(RpcFrames.replyHeader(status, false, 0, 0), body));
    }

    static Frame element(long id, byte[] body) {
        return new Frame(Facts.TYPE_ID_REPLY, id, join(RpcFrames.replyHeader(RpcStatus.OK, true, 0, 0), body));
    }

    static Frame cancel(long id) {
        return new Frame(Facts.TYPE_ID_CANCEL, id, RpcFrames.NONE);
    }

    static Frame credit(long id, int n) {
        return new Frame(Facts.TYPE_ID_CREDIT, id, RpcFrames.credit(n));
    }

    private static byte[] join(byte[] a, byte[] b) {
        byte[] all = Arrays.copyOf(a, a.length + b.length);
        System.arraycopy(b, 0, all, a.length, b.length);
        return all;
    }

    static RpcRaw connect(String path) throws InterruptedException {
        return new RpcRaw(new BusConnector(path, ConnectOptions.DEFAULT, BusUse.RPC).connect());
    }

    /** What a server listens by. */
    static Listener listen(String path, long capacity, int maxInFlight) {
        ListenOptions options = ListenOptions.DEFAULT.withCapacity(capacity).withAllowUids(Set.of());
        return Listener.bind(path, options, BusGuests.clients(64, maxInFlight));
    }

    static RpcRaw accept(Listener listener) throws InterruptedException {
        return new RpcRaw(listener.accept(Scratch.LONG));
    }

    /** Publishes frames, all at once. */
    void send(Frame... frames) throws InterruptedException {
        for (Frame each : frames) {
            Slot slot = bus.sender().reserve(each.payload().length, Scratch.LONG);
            slot.put(0, each.payload());
            slot.finish(each.typeId(), each.id(), each.payload().length, false);
        }
        bus.sender().flush();
    }

    /** The next frame. */
    Frame receive() throws InterruptedException {
        try (Message message = bus.receiver().recv(Scratch.LONG)) {
            return new Frame(message.typeId(), message.tag(), message.toByteArray());
        }
    }

    /** The next REPLY. */
    RpcFrames.Reply reply() throws InterruptedException {
        try (Message message = bus.receiver().recv(Scratch.LONG)) {
            return RpcFrames.fromServer(message);
        }
    }

    @Override
    public void close() {
        bus.close();
    }
}
