package dev.ramway;

/**
 * What a bus is made for: both sides say so in the handshake and in the segment, and must agree (ABI.md, section 20).
 *
 * @param features the required features of HELLO, WELCOME and the segment, exactly
 * @param maxInFlight what a server's WELCOME says; else 0
 */
record BusUse(int features, int maxInFlight) {
    /** Messages of the application's. */
    static final BusUse PLAIN = new BusUse(Facts.HANDSHAKE_FEATURES, 0);
    /** A client's side of RPC. */
    static final BusUse RPC = new BusUse(Facts.RPC_FEATURES, 0);

    /** A server's side of RPC. */
    static BusUse serve(int maxInFlight) {
        return new BusUse(Facts.RPC_FEATURES, maxInFlight);
    }

    boolean isRpc() {
        return features == Facts.RPC_FEATURES;
    }

    /** Refuses other features than those of this use. */
    void check(int found, String who) {
        if (found == features) {
            return;
        }
        if (found == Facts.RPC_FEATURES) {
            throw Errors.fail(ErrorKind.ABI_MISMATCH, "%s uses RPC, which a plain bus does not: connect to it by RpcClient, or serve it by "
                    + "RpcServer", who);
        }
        if (found == 0) {
            throw Errors.fail(ErrorKind.ABI_MISMATCH, "%s uses a plain bus, expected RPC: connect to it by Bus, or listen by Listener",
                    who);
        }
        throw Errors.fail(ErrorKind.ABI_MISMATCH, "%s requires features %#x, which this version lacks", who, found & ~features);
    }
}
