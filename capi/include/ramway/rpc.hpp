/// What calls between processes are asked for and give. Part of ramway.hpp.
#ifndef RAMWAY_RPC_HPP
#define RAMWAY_RPC_HPP

#include "../ramway.h"
#include "options.hpp"
#include "result.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace ramway::rpc {

/// How a server says that a call has ended: see RAMWAY_RPC_OK and its siblings.
enum class status : std::uint32_t {
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
    /// The server did not say: this side ended the call, or the connection is over.
    none = RAMWAY_RPC_NO_STATUS,
};

/// The number of a method's name, UTF-8: the same in every language.
inline std::uint32_t method_id(const std::string &name) noexcept { return ramway_rpc_method_id(name.c_str()); }

/// Why a call has no reply. Either the server ended it, which status() says, or this side did or the connection is
/// over, which error() says.
class call_error {
  public:
    call_error() = default;
    /// What a call that could not be asked for has just returned.
    explicit call_error(const ramway::error &cause) : error_(cause.code()), text_(cause.what()) {}
    /// What came of a call.
    explicit call_error(const ramway_rpc_reply &from)
        : status_(static_cast<rpc::status>(from.status)),
          code_(from.code),
          may_have_run_(from.may_have_run),
          error_(static_cast<ramway::status>(from.error)),
          text_(from.text) {}

    /// What the server said; status::none if it did not.
    rpc::status status() const noexcept { return status_; }
    /// Why this side ended the call: closed, peer_dead, timed_out, too_large, corrupt, ...; ok if the server did.
    ramway::status error() const noexcept { return error_; }
    /// With status::application the application's number; else 0.
    std::uint32_t code() const noexcept { return code_; }
    /// What went wrong; with status::application and handler_failed what the server wrote.
    const std::string &text() const noexcept { return text_; }
    /// Whether the server may have begun the call. If not, it can be made again without being made twice.
    bool may_have_run() const noexcept { return may_have_run_; }
    /// Whether the time limit ended it, on either side.
    bool is_timed_out() const noexcept {
        return status_ == rpc::status::timed_out || error_ == ramway::status::timed_out;
    }
    const char *what() const noexcept { return text_.c_str(); }

  private:
    rpc::status status_ = rpc::status::none;
    std::uint32_t code_ = 0;
    bool may_have_run_ = false;
    ramway::status error_ = ramway::status::ok;
    std::string text_;
};

/// What result<T, call_error>::value() throws.
class call_exception : public std::exception {
  public:
    explicit call_exception(call_error error) : error_(std::make_shared<call_error>(std::move(error))) {}
    const call_error &error() const noexcept { return *error_; }
    rpc::status status() const noexcept { return error_->status(); }
    std::uint32_t code() const noexcept { return error_->code(); }
    const char *what() const noexcept override { return error_->what(); }

  private:
    // Shared, because copying an exception must not throw.
    std::shared_ptr<const call_error> error_;
};

/// For result<T>::value().
[[noreturn]] inline void raise([[maybe_unused]] call_error &&cause) {
#ifdef __cpp_exceptions
    throw call_exception(std::move(cause));
#else
    std::abort();
#endif
}

/// A T, or why a call has none.
template <class T>
using result = ramway::result<T, call_error>;

/// What a server replied: a copy, which is this one's.
class reply {
  public:
    reply(reply &&other) noexcept : c_(std::exchange(other.c_, ramway_rpc_reply{})) {}
    reply &operator=(reply &&other) noexcept {
        if (this != &other) {
            ramway_rpc_reply_free(&c_);
            c_ = std::exchange(other.c_, ramway_rpc_reply{});
        }
        return *this;
    }
    ~reply() { ramway_rpc_reply_free(&c_); }

    std::span<const std::byte> body() const noexcept { return {static_cast<const std::byte *>(c_.body), c_.len}; }
    std::string_view text() const noexcept { return {static_cast<const char *>(c_.body), c_.len}; }
    /// Bytes that the application defines.
    std::span<const std::byte> meta() const noexcept {
        return {static_cast<const std::byte *>(c_.meta), c_.meta_len};
    }
    /// This is an element of a stream, and it goes on; else it is the end.
    bool more() const noexcept { return c_.more; }

    /// Takes what a call of ramway.h has filled: a reply, or why there is none.
    static result<reply> of(ramway_status code, ramway_rpc_reply &&c) {
        if (code == RAMWAY_OK) [[likely]] {
            return reply(c);
        }
        // What has no text of its own was no call: the text is the thread's last error.
        call_error cause = c.owner != nullptr ? call_error(c) : call_error(ramway::error(code));
        ramway_rpc_reply_free(&c);
        return cause;
    }

  private:
    explicit reply(const ramway_rpc_reply &c) noexcept : c_(c) {}

    ramway_rpc_reply c_{};
};

/// What can be asked for when a client connects: see ramway_rpc_client_options. Whatever is left out is its default.
struct client_options {
    std::uint64_t max_buffered = 0;
    std::span<const std::uint32_t> allow_uids{};
    wait_policy wait = wait_policy::automatic;
    /// How long to wait for the server; 0: the default, 10 s.
    std::chrono::nanoseconds timeout{0};
    bool membarrier = true;

    ramway_rpc_client_options c() const noexcept {
        ramway_rpc_client_options o = RAMWAY_RPC_CLIENT_OPTIONS_INIT;
        detail::fill_peers(o, *this);
        o.max_buffered = max_buffered;
        o.flags = membarrier ? 0u : RAMWAY_NO_MEMBARRIER;
        return o;
    }
};

/// What can be asked for with a call: see ramway_rpc_call_options. Whatever is left out is its default.
struct call_options {
    /// The call's time limit; 0, and ramway::forever: none.
    std::chrono::nanoseconds timeout{0};
    /// Metadata of the request: bytes that the application defines.
    bytes meta{};
    /// Of a stream: how many elements may be under way; 0: the default, 16.
    std::uint32_t window = 0;

    ramway_rpc_call_options c() const noexcept {
        ramway_rpc_call_options o = RAMWAY_RPC_CALL_OPTIONS_INIT;
        o.timeout_ns = detail::ns(timeout);
        o.meta = meta.data();
        o.meta_len = meta.size();
        o.window = window;
        return o;
    }
};

/// What can be asked for when a server is made: see ramway_rpc_server_options. Whatever is left out is its default.
struct server_options {
    std::uint64_t capacity = 0;
    std::uint32_t align = 0;
    std::uint32_t max_clients = 0;
    std::uint32_t max_in_flight = 0;
    std::uint64_t max_bytes = 0;
    std::uint32_t mode = 0;
    wait_policy wait = wait_policy::automatic;
    std::span<const std::uint32_t> allow_uids{};
    /// How long a handshake may take; 0: the default, 1 s.
    std::chrono::nanoseconds timeout{0};

    ramway_rpc_server_options c() const noexcept {
        ramway_rpc_server_options o = RAMWAY_RPC_SERVER_OPTIONS_INIT;
        detail::fill_listening(o, *this);
        o.max_clients = max_clients;
        o.max_in_flight = max_in_flight;
        o.max_bytes = max_bytes;
        return o;
    }
};

/// A method of a server.
struct method_info {
    std::uint32_t number;
    /// Empty for a method without one.
    std::optional<std::string> name;
};

}  // namespace ramway::rpc

#endif
