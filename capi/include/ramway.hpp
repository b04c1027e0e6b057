/// Ramway for C++20: header only, over libramway and the inline hot path.
///
/// Every call that can fail returns a ramway::result<T>. Why not exceptions alone: "full", "empty" and "timed out" are
/// everyday outcomes of a ring that a loop must be able to meet without unwinding and without allocating, and much
/// code that wants shared memory is compiled without exceptions. Why not std::expected: C++20 does not have it, and a
/// type that depends on the language mode would give two translation units of one program different functions of one
/// name. Who prefers exceptions writes .value(), which throws ramway::exception.
///
///     auto tx = ramway::sender::create("frames", {.capacity = 1 << 20}).value();
///     if (auto sent = tx.try_send(1, bytes); !sent && sent.error().code() == ramway::status::full) { ... }
///
/// Handles are move-only and close when they go out of scope. One thread at a time uses a handle, except for listener
/// and region; select, inbox, outbox, rpc::client and rpc::server say status::busy to a second one.
#ifndef RAMWAY_HPP
#define RAMWAY_HPP

#include "ramway/bus.hpp"
#include "ramway/inbox.hpp"
#include "ramway/options.hpp"
#include "ramway/outbox.hpp"
#include "ramway/peer.hpp"
#include "ramway/receiver.hpp"
#include "ramway/region.hpp"
#include "ramway/result.hpp"
#include "ramway/rpc.hpp"
#include "ramway/rpc_client.hpp"
#include "ramway/rpc_server.hpp"
#include "ramway/segments.hpp"
#include "ramway/select.hpp"
#include "ramway/sender.hpp"
#include "ramway/tensor.hpp"
#include "ramway/topic.hpp"

#endif
