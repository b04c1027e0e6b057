/// Work for many workers. Part of ramway.hpp.
#ifndef RAMWAY_OUTBOX_HPP
#define RAMWAY_OUTBOX_HPP

#include "../ramway.h"
#include "options.hpp"
#include "peer.hpp"
#include "result.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ramway {

/// What can be asked for when an outbox is made: see ramway_outbox_options. Whatever is left out is its default.
struct outbox_options {
    std::uint64_t capacity = 0;
    std::uint32_t align = 0;
    std::uint32_t max_peers = 0;
    std::uint32_t mode = 0;
    wait_policy wait = wait_policy::automatic;
    std::span<const std::uint32_t> allow_uids{};
    /// How long a handshake may take; 0: the default, 1 s.
    std::chrono::nanoseconds timeout{0};
    /// How many messages a worker may have at a time; 0: the default, 1.
    std::uint32_t prefetch = 0;
    /// To how many workers a message is given before take_undelivered gives it; 0: the default, 3.
    std::uint32_t max_deliveries = 0;
    /// Keeps a copy of each message until it is given back, so that no worker can change what another one gets.
    bool copies = false;

    ramway_outbox_options c() const noexcept {
        ramway_outbox_options o = RAMWAY_OUTBOX_OPTIONS_INIT;
        o.capacity = capacity;
        o.align = align;
        o.max_peers = max_peers;
        o.mode = mode;
        o.wait_policy = static_cast<std::uint32_t>(wait);
        o.allow_uids = allow_uids.data();
        o.allow_uid_count = static_cast<std::uint32_t>(allow_uids.size());
        o.flags = copies ? RAMWAY_COPIES : 0u;
        o.timeout_ns = detail::ns(timeout);
        o.prefetch = prefetch;
        o.max_deliveries = max_deliveries;
        return o;
    }
};

/// A message that no worker has given back.
struct undelivered {
    std::uint32_t type_id;
    std::uint64_t tag;
    /// To how many workers it was given.
    std::uint32_t deliveries;
    std::vector<std::byte> data;
};

/// A worker that is connected, and how many messages it has.
struct worker {
    ramway::peer peer;
    std::size_t messages;
};

/// Gives each message to one of many workers. A worker is an ordinary bus::connect, and has done its task when it releases the
/// message; what a worker that died or closed had not given back goes to another one. While one thread is in a call, another
/// one's gets status::busy, except wake.
class outbox {
  public:
    static result<outbox> bind(const std::string &name, const outbox_options &o = {}) {
        outbox made;
        ramway_outbox *out = nullptr;
        const ramway_outbox_options c = o.c();
        const auto code = ramway_outbox_bind(name.c_str(), &c, &out);
        made.handle_.reset(out);
        return code == RAMWAY_OK ? result<outbox>(std::move(made)) : result<outbox>(error(code));
    }

    /// Gives a message to a worker that may have another one; waits for such a worker as long as it takes.
    result<void> send(std::uint32_t type_id, bytes data) { return put(type_id, 0, data, RAMWAY_FOREVER); }
    result<void> send(std::uint32_t type_id, std::uint64_t tag, bytes data) {
        return put(type_id, tag, data, RAMWAY_FOREVER);
    }
    /// Does not wait: status::full.
    result<void> try_send(std::uint32_t type_id, bytes data) { return put(type_id, 0, data, detail::now); }
    result<void> try_send(std::uint32_t type_id, std::uint64_t tag, bytes data) {
        return put(type_id, tag, data, detail::now);
    }
    result<void> send_for(std::chrono::nanoseconds timeout, std::uint32_t type_id, bytes data) {
        return put(type_id, 0, data, detail::ns(timeout));
    }
    result<void> send_for(std::chrono::nanoseconds timeout, std::uint32_t type_id, std::uint64_t tag, bytes data) {
        return put(type_id, tag, data, detail::ns(timeout));
    }
    /// Waits until every message was given back or taken out. Deaths are seen, and messages given again, inside the calls of an
    /// outbox only.
    result<void> drain(std::chrono::nanoseconds timeout = forever) {
        return detail::outcome(ramway_outbox_drain(handle_.get(), detail::ns(timeout)));
    }
    /// A message that no worker has given back, and that is given to nobody any more: the oldest one; status::empty if there is
    /// none.
    result<undelivered> take_undelivered() {
        ramway_undelivered u;
        const auto code = ramway_outbox_take_undelivered(handle_.get(), &u);
        if (code != RAMWAY_OK) {
            return error(code);
        }
        const auto *data = static_cast<const std::byte *>(u.data);
        return undelivered{u.type_id, u.tag, u.deliveries, std::vector<std::byte>(data, data + u.len)};
    }
    /// How many messages are given to somebody and not given back, or wait to be given again.
    std::size_t outstanding() const noexcept { return ramway_outbox_outstanding(handle_.get()); }
    /// Those that are connected.
    result<std::vector<worker>> workers() const {
        std::vector<worker> all;
        // Nothing may unwind through C.
        const auto each = [](const ramway_peer *one, std::size_t messages, void *user) noexcept {
            static_cast<std::vector<worker> *>(user)->push_back({peer::of(*one), messages});
        };
        const auto code = ramway_outbox_workers(handle_.get(), each, &all);
        return code == RAMWAY_OK ? result<std::vector<worker>>(std::move(all))
                                 : result<std::vector<worker>>(error(code));
    }
    /// The socket's path.
    std::string path() const {
        const char *path = ramway_outbox_path(handle_.get());
        return path != nullptr ? path : "";
    }
    /// Any thread, while the handle is open: ends the wait that is running, or the next one, with status::interrupted.
    void wake() const noexcept { (void)ramway_outbox_wake(handle_.get()); }

  private:
    outbox() = default;
    result<void> put(std::uint32_t type_id, std::uint64_t tag, bytes data, std::int64_t timeout) {
        return detail::outcome(ramway_outbox_send(handle_.get(), type_id, tag, data.data(), data.size(), timeout));
    }

    detail::handle<ramway_outbox, ramway_outbox_free> handle_;
};

}  // namespace ramway

#endif
