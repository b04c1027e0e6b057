/// Many producers into one consumer. Part of ramway.hpp.
#ifndef RAMWAY_INBOX_HPP
#define RAMWAY_INBOX_HPP

#include "../ramway.h"
#include "options.hpp"
#include "peer.hpp"
#include "receiver.hpp"
#include "result.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ramway {

/// What can be asked for when an inbox is made: see ramway_inbox_options. Whatever is left out is its default.
struct inbox_options {
    std::uint64_t capacity = 0;
    std::uint32_t align = 0;
    std::uint32_t max_peers = 0;
    std::uint32_t mode = 0;
    wait_policy wait = wait_policy::automatic;
    std::span<const std::uint32_t> allow_uids{};
    /// How long a handshake may take; 0: the default, 1 s.
    std::chrono::nanoseconds timeout{0};

    ramway_inbox_options c() const noexcept {
        ramway_inbox_options o = RAMWAY_INBOX_OPTIONS_INIT;
        detail::fill_listening(o, *this);
        o.max_peers = max_peers;
        return o;
    }
};

/// How a producer went.
enum class left : std::uint32_t {
    /// It closed.
    closed = RAMWAY_LEFT_CLOSED,
    /// Its process died.
    died = RAMWAY_LEFT_DIED,
    /// It wrote what no correct producer writes; its other messages are not read.
    corrupt = RAMWAY_LEFT_CORRUPT,
};

/// What an inbox gives: a message and who sent it, a view of the shared memory that is given back when it goes out of scope; or
/// that a producer has gone, and then it is empty. Must not outlive its inbox.
class incoming : public detail::viewing<incoming> {
  public:
    incoming(incoming &&other) noexcept : inbox_(std::exchange(other.inbox_, nullptr)), c_(other.c_) {}
    incoming &operator=(incoming &&other) noexcept {
        if (this != &other) {
            release();
            inbox_ = std::exchange(other.inbox_, nullptr);
            c_ = other.c_;
        }
        return *this;
    }
    ~incoming() { release(); }

    /// Who sent it, or has gone.
    ramway::peer peer() const noexcept { return ramway::peer::of(c_.peer); }
    /// How the producer went, after its last message; empty for a message.
    std::optional<ramway::left> left() const noexcept {
        return c_.left == RAMWAY_LEFT_NOT ? std::nullopt : std::optional(static_cast<ramway::left>(c_.left));
    }
    std::span<const std::byte> data() const noexcept { return bytes(); }
    std::size_t size() const noexcept { return c_.message.len; }
    std::uint32_t type_id() const noexcept { return c_.message.type_id; }
    std::uint64_t tag() const noexcept { return c_.message.tag; }
    /// The message as C has it.
    const ramway_message &plain() const noexcept { return c_.message; }
    /// Gives the message back now; the view is over.
    void release() noexcept {
        if (inbox_ != nullptr) {
            (void)ramway_inbox_release(std::exchange(inbox_, nullptr));
        }
    }

  private:
    friend class inbox;
    incoming(ramway_inbox *inbox, const ramway_incoming &c)
        : inbox_(c.left == RAMWAY_LEFT_NOT ? inbox : nullptr), c_(c) {}

    ramway_inbox *inbox_;
    ramway_incoming c_;
};

/// Receives from any number of producers, each of which is an ordinary bus::connect and has a ring of its own. Producers are
/// served in rotation, message by message. While one thread is in a call, another one's gets status::busy, except wake.
class inbox {
  public:
    static result<inbox> bind(const std::string &name, const inbox_options &o = {}) {
        inbox made;
        ramway_inbox *out = nullptr;
        const ramway_inbox_options c = o.c();
        const auto code = ramway_inbox_bind(name.c_str(), &c, &out);
        made.handle_.reset(out);
        return code == RAMWAY_OK ? result<inbox>(std::move(made)) : result<inbox>(error(code));
    }

    /// The next message or departure; waits as long as it takes. status::closed once the inbox was closed and every producer
    /// has gone. See ramway_inbox_recv.
    result<incoming> recv() { return take(RAMWAY_FOREVER); }
    /// Does not wait: status::empty.
    result<incoming> try_recv() { return take(detail::now); }
    result<incoming> recv_for(std::chrono::nanoseconds timeout) { return take(detail::ns(timeout)); }
    /// Those that are connected.
    result<std::vector<peer>> peers() const {
        std::vector<peer> all;
        // Nothing may unwind through C.
        const auto each = [](const ramway_peer *one, void *user) noexcept {
            static_cast<std::vector<peer> *>(user)->push_back(peer::of(*one));
        };
        const auto code = ramway_inbox_peers(handle_.get(), each, &all);
        return code == RAMWAY_OK ? result<std::vector<peer>>(std::move(all)) : result<std::vector<peer>>(error(code));
    }
    /// The socket's path; empty once closed.
    std::string path() const {
        const char *path = ramway_inbox_path(handle_.get());
        return path != nullptr ? path : "";
    }
    /// Any thread, while the handle is open: ends the wait that is running, or the next one, with status::interrupted, unless
    /// there is something to give.
    void wake() const noexcept { (void)ramway_inbox_wake(handle_.get()); }
    /// Takes no new producer, and no new message of those that are there: see ramway_inbox_close.
    result<void> close() { return detail::outcome(ramway_inbox_close(handle_.get())); }

  private:
    inbox() = default;
    result<incoming> take(std::int64_t timeout) {
        ramway_incoming taken;
        const auto code = ramway_inbox_recv(handle_.get(), timeout, &taken);
        if (code == RAMWAY_OK) [[likely]] {
            return incoming(handle_.get(), taken);
        }
        return error(code);
    }

    detail::handle<ramway_inbox, ramway_inbox_free> handle_;
};

}  // namespace ramway

#endif
