/// Buses and listeners. Part of ramway.hpp.
#ifndef RAMWAY_BUS_HPP
#define RAMWAY_BUS_HPP

#include "../ramway.h"
#include "options.hpp"
#include "receiver.hpp"
#include "result.hpp"
#include "sender.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace ramway {

/// A full-duplex connection to one process: a ring each way. Closes when it goes out of scope.
class bus {
  public:
    /// Listens, takes one peer, removes the name again.
    static result<bus> listen(const std::string &name, const bus_options &o = {},
                              std::chrono::nanoseconds timeout = forever) {
        ramway_bus *out = nullptr;
        const ramway_bus_options c = o.c();
        const auto code = ramway_bus_listen(name.c_str(), &c, detail::ns(timeout), &out);
        return give(code, out);
    }
    /// Waits for a listener that is not there yet, for o.timeout (default 10 s).
    static result<bus> connect(const std::string &name, const bus_options &o = {}) {
        ramway_bus *out = nullptr;
        const ramway_bus_options c = o.c();
        const auto code = ramway_bus_connect(name.c_str(), &c, &out);
        return give(code, out);
    }

    /// Both ends; one that the listener gave no capacity is empty (operator bool).
    ramway::sender &sender() noexcept { return sender_; }
    ramway::receiver &receiver() noexcept { return receiver_; }
    /// The two ends apart, for two threads say.
    std::pair<ramway::sender, ramway::receiver> split() && { return {std::move(sender_), std::move(receiver_)}; }

    std::uint32_t peer_uid() const noexcept { return peer_uid_; }
    /// 0 if the peer has no number here.
    std::uint32_t peer_pid() const noexcept { return peer_pid_; }
    bool is_peer_alive() const noexcept {
        return (sender_ && sender_.is_peer_alive()) || (receiver_ && receiver_.is_peer_alive());
    }

  private:
    friend class listener;
    bus() = default;
    static result<bus> give(ramway_status code, ramway_bus *handle) {
        if (code != RAMWAY_OK) {
            return error(code);
        }
        bus made;
        made.peer_uid_ = ramway_bus_peer_uid(handle);
        made.peer_pid_ = ramway_bus_peer_pid(handle);
        ramway_sender *tx = nullptr;
        ramway_receiver *rx = nullptr;
        (void)ramway_bus_split(handle, &tx, &rx);
        made.sender_ = ramway::sender::adopt(tx);
        made.receiver_ = ramway::receiver::adopt(rx);
        return made;
    }

    ramway::sender sender_;
    ramway::receiver receiver_;
    std::uint32_t peer_uid_ = 0;
    std::uint32_t peer_pid_ = 0;
};

/// Accepts connections, each a bus of its own. May be shared by threads.
class listener {
  public:
    static result<listener> bind(const std::string &name, const bus_options &o = {}) {
        listener made;
        ramway_listener *out = nullptr;
        const ramway_bus_options c = o.c();
        auto code = ramway_listener_bind(name.c_str(), &c, &out);
        made.handle_.reset(out);
        return code == RAMWAY_OK ? result<listener>(std::move(made)) : result<listener>(error(code));
    }

    result<bus> accept(std::chrono::nanoseconds timeout = forever) const {
        ramway_bus *out = nullptr;
        const auto code = ramway_listener_accept(handle_.get(), detail::ns(timeout), &out);
        return bus::give(code, out);
    }
    /// Does not wait: status::empty.
    result<bus> try_accept() const { return accept(std::chrono::nanoseconds{0}); }
    /// Readable when try_accept may get somewhere; not to be read or closed.
    int fd() const noexcept { return ramway_listener_fd(handle_.get()); }
    /// How many connectors have been refused or have given up so far.
    std::uint64_t refused() const noexcept { return ramway_listener_refused(handle_.get()); }
    /// Why the last one was refused, for logs; empty if none was.
    std::string last_refusal() const {
        std::string text(ramway_listener_last_refusal(handle_.get(), nullptr, 0), '\0');
        // Another one may have been refused in between: then the text is cut off, or shorter.
        const std::size_t len = ramway_listener_last_refusal(handle_.get(), text.data(), text.size() + 1);
        text.resize(std::min(text.size(), len));
        return text;
    }
    std::string_view path() const noexcept {
        const char *path = ramway_listener_path(handle_.get());
        return path != nullptr ? path : "";
    }
    /// For calls of ramway.h; stays ours.
    ramway_listener *get() const noexcept { return handle_.get(); }

  private:
    listener() = default;
    detail::handle<ramway_listener, ramway_listener_close> handle_;
};

}  // namespace ramway

#endif
