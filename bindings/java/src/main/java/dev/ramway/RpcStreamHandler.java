package dev.ramway;

import java.util.Iterator;

/** A method of an {@link RpcServer} whose reply is a stream. */
@FunctionalInterface
public interface RpcStreamHandler {
    /**
     * Handles a call. It runs as {@link RpcHandler#handle} does, and so does the iterator that it gives: one element is asked for
     * before the client has room for it, and while it has none the call holds no thread. An iterator that is {@link AutoCloseable}
     * is closed at the end.
     *
     * @param request what was asked
     * @return the elements, which are not to be changed any more; what the iterator throws ends the call as what this throws
     * @throws RpcException ends the call with an error of the application's: its code and text
     * @throws Exception ends the call with the status HANDLER_FAILED, and the exception as its text
     */
    Iterator<byte[]> handle(RpcRequest request) throws Exception;
}
