// facts: rpc statuses (generated from format/facts.toml by `make facts`)
    /// The call succeeded.
    ok = RAMWAY_RPC_OK,
    /// The handler replied with an error of its own: a number and a text.
    application = RAMWAY_RPC_APPLICATION,
    /// The server has no such method. The call was not run.
    no_such_method = RAMWAY_RPC_NO_SUCH_METHOD,
    /// The call's time was over before it was begun. It was not run.
    timed_out = RAMWAY_RPC_TIMED_OUT,
    /// The call was cancelled.
    cancelled = RAMWAY_RPC_CANCELLED,
    /// A limit of the server was reached. The call was not run.
    overloaded = RAMWAY_RPC_OVERLOADED,
    /// The call was run, but its reply is longer than the ring or than the server's limit of bytes.
    reply_too_large = RAMWAY_RPC_REPLY_TOO_LARGE,
    /// The server is shutting down. The call was not run.
    draining = RAMWAY_RPC_DRAINING,
    /// The handler failed in a way that it did not mean to: a panic, an exception.
    handler_failed = RAMWAY_RPC_HANDLER_FAILED,
// end of facts
