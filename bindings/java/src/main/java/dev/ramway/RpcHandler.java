package dev.ramway;

/** A method of an {@link RpcServer} that gives one reply. */
@FunctionalInterface
public interface RpcHandler {
    /**
     * Handles a call. It runs on a thread of the server's executor, a virtual one by default, which is interrupted when the call is
     * cancelled or its time is over; or, of {@link RpcServer#inlineMethod}, on the thread that reads what its client asks.
     *
     * @param request what was asked
     * @return the reply; it is not to be changed any more
     * @throws RpcException ends the call with an error of the application's: its code and text
     * @throws Exception ends the call with the status HANDLER_FAILED, and the exception as its text
     */
    byte[] handle(RpcRequest request) throws Exception;
}
