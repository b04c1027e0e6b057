/// The side that calls. Part of ramway.hpp.
#ifndef RAMWAY_RPC_CLIENT_HPP
#define RAMWAY_RPC_CLIENT_HPP

#include "../ramway.h"
#include "result.hpp"
#include "rpc.hpp"

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ramway::rpc {

namespace detail {
using ramway::detail::ns;

/// A call that is under way, which is cancelled when this goes. Must not outlive its client.
class under_way {
  public:
    under_way(ramway_rpc_client *client, std::uint64_t call) noexcept : client_(client), call_(call) {}
    under_way(under_way &&other) noexcept : client_(std::exchange(other.client_, nullptr)), call_(other.call_) {}
    under_way &operator=(under_way &&other) noexcept {
        if (this != &other) {
            cancel();
            client_ = std::exchange(other.client_, nullptr);
            call_ = other.call_;
        }
        return *this;
    }
    ~under_way() { cancel(); }

    void cancel() noexcept {
        if (client_ != nullptr) {
            (void)ramway_rpc_cancel(std::exchange(client_, nullptr), call_);
        }
    }
    bool has_ended() const noexcept { return client_ == nullptr; }
    result<reply> wait(std::int64_t timeout) {
        ramway_rpc_reply c;
        const auto code = ramway_rpc_wait(client_, call_, timeout, &c);
        // After these the call goes on: the wait was over, not the call.
        const bool goes_on = c.status == RAMWAY_RPC_NO_STATUS && c.owner == nullptr &&
                             (code == RAMWAY_EMPTY || code == RAMWAY_INTERRUPTED || code == RAMWAY_BUSY ||
                              code == RAMWAY_INVALID_ARGUMENT);
        if (!c.more && !goes_on) {
            client_ = nullptr;
        }
        return reply::of(code, std::move(c));
    }

  private:
    ramway_rpc_client *client_;
    std::uint64_t call_;
};
}  // namespace detail

/// A call that is under way. Letting go of it cancels the call. Must not outlive its client.
class pending {
  public:
    /// The reply, waiting for it as long as it takes: the call's own time limit ends the wait. The call is over then,
    /// but with ramway::status::interrupted, by client::wake.
    result<reply> wait() { return call_.wait(RAMWAY_FOREVER); }
    /// Waits for at most this long: ramway::status::empty (call_error::error) if nothing has come. The call goes on then.
    result<reply> wait_for(std::chrono::nanoseconds timeout) { return call_.wait(detail::ns(timeout)); }
    /// The reply if it is there; else ramway::status::empty.
    result<reply> try_wait() { return call_.wait(RAMWAY_TRY); }
    /// Cancels the call, and tells the server at once.
    void cancel() noexcept { call_.cancel(); }

  private:
    friend class client;
    explicit pending(detail::under_way call) noexcept : call_(std::move(call)) {}
    detail::under_way call_;
};

/// A call whose reply is a stream, whose elements are a range. Letting go of it cancels the call. Must not outlive its
/// client.
///
///     auto lines = client.stream(8, "log"sv).value();
///     for (auto &line : lines) { print(line.value().text()); }
class stream {
  public:
    /// The next element, waiting for it as long as it takes; empty once the stream is complete, and after its end.
    result<std::optional<reply>> next() { return take(RAMWAY_FOREVER); }
    /// Waits for at most this long: ramway::status::empty (call_error::error) if nothing has come. The stream goes on then.
    result<std::optional<reply>> next_for(std::chrono::nanoseconds timeout) { return take(detail::ns(timeout)); }
    /// The next element if it is there; else ramway::status::empty.
    result<std::optional<reply>> try_next() { return take(RAMWAY_TRY); }
    /// Cancels the call, and tells the server at once.
    void cancel() noexcept { call_.cancel(); }

    /// Elements, each waited for. The last one is an error if the stream did not end well.
    class iterator {
      public:
        using value_type = result<reply>;
        using difference_type = std::ptrdiff_t;
        using iterator_concept = std::input_iterator_tag;

        iterator() = default;
        value_type &operator*() const noexcept { return *stream_->current_; }
        value_type *operator->() const noexcept { return &*stream_->current_; }
        iterator &operator++() {
            stream_->advance();
            return *this;
        }
        void operator++(int) { ++*this; }
        friend bool operator==(const iterator &it, std::default_sentinel_t) noexcept { return it.is_over(); }

      private:
        friend class stream;
        bool is_over() const noexcept { return stream_ == nullptr || !stream_->current_.has_value(); }
        explicit iterator(stream *of) noexcept : stream_(of) {}
        stream *stream_ = nullptr;
    };
    iterator begin() {
        advance();
        return iterator(this);
    }
    std::default_sentinel_t end() const noexcept { return {}; }

  private:
    friend class client;
    explicit stream(detail::under_way call) noexcept : call_(std::move(call)) {}

    result<std::optional<reply>> take(std::int64_t timeout) {
        if (call_.has_ended()) {
            return std::optional<reply>();
        }
        auto taken = call_.wait(timeout);
        if (!taken) {
            return taken.error();
        }
        return taken->more() ? std::optional<reply>(std::move(*taken)) : std::optional<reply>();
    }
    void advance() {
        current_.reset();
        auto taken = next();
        if (!taken) {
            current_.emplace(taken.error());
        } else if (taken->has_value()) {
            current_.emplace(std::move(**taken));
        }
    }

    detail::under_way call_;
    std::optional<result<reply>> current_;
};

/// Calls the methods of an RPC server. While one thread is in a call, another one's gets ramway::status::busy, except wake.
/// Replies are received inside its calls: see ramway_rpc_client.
class client {
  public:
    /// Called with what came of a call; of a stream with each element (reply::more), and with its end. An exception
    /// ends the poll that called it, and comes out of that.
    using callback = std::function<void(result<reply>)>;

    /// Waits for a server that is not there yet, for o.timeout (default 10 s).
    static ramway::result<client> connect(const std::string &name, const client_options &o = {}) {
        client made;
        ramway_rpc_client *out = nullptr;
        const ramway_rpc_client_options c = o.c();
        const auto code = ramway_rpc_connect(name.c_str(), &c, &out);
        made.handle_.reset(out);
        return code == RAMWAY_OK ? ramway::result<client>(std::move(made)) : ramway::result<client>(error(code));
    }

    /// Sends a request and waits for its reply, as long as it takes or o.timeout allows.
    result<reply> call(std::uint32_t method, bytes body, const call_options &o = {}) {
        const ramway_rpc_call_options c = o.c();
        ramway_rpc_reply out;
        const auto code = ramway_rpc_call(handle_.get(), method, body.data(), body.size(), &c, &out);
        return reply::of(code, std::move(out));
    }
    /// Sends a request and gives the call that is under way. It does not wait.
    result<pending> start(std::uint32_t method, bytes body, const call_options &o = {}) {
        std::uint64_t number = 0;
        const auto code = ask(ramway_rpc_start, method, body, o, nullptr, &number);
        return code == RAMWAY_OK ? result<pending>(pending(under_way(number))) : result<pending>(failed(code));
    }
    /// The same with a callback, which poll runs. Gives the call's number, for cancel.
    result<std::uint64_t> start(std::uint32_t method, bytes body, const call_options &o, callback done) {
        return ask_with(ramway_rpc_start, method, body, o, std::move(done));
    }
    /// Sends a request whose reply is a stream. It does not wait.
    result<rpc::stream> stream(std::uint32_t method, bytes body, const call_options &o = {}) {
        std::uint64_t number = 0;
        const auto code = ask(ramway_rpc_start_stream, method, body, o, nullptr, &number);
        return code == RAMWAY_OK ? result<rpc::stream>(rpc::stream(under_way(number)))
                                 : result<rpc::stream>(failed(code));
    }
    /// The same with a callback, which poll runs. Gives the call's number, for cancel.
    result<std::uint64_t> stream(std::uint32_t method, bytes body, const call_options &o, callback each) {
        return ask_with(ramway_rpc_start_stream, method, body, o, std::move(each));
    }
    /// Cancels a call with a callback, which is not called any more.
    ramway::result<void> cancel(std::uint64_t number) {
        const auto code = ramway_rpc_cancel(handle_.get(), number);
        if (code == RAMWAY_OK) {
            state_->callbacks.erase(number);
        }
        return ramway::detail::outcome(code);
    }
    /// Runs the callbacks that there is something for; if there is nothing, waits for it: see ramway_rpc_poll. In a
    /// callback calls may be started and cancelled; what waits is ramway::status::busy there.
    ramway::result<void> poll(std::chrono::nanoseconds timeout = forever) {
        const auto code = ramway_rpc_poll(handle_.get(), detail::ns(timeout));
#ifdef __cpp_exceptions
        if (state_->thrown) [[unlikely]] {
            std::rethrow_exception(std::exchange(state_->thrown, nullptr));
        }
#endif
        return ramway::detail::outcome(code);
    }
    /// Waits until the server has answered: it is there and reads.
    ramway::result<void> ping(std::chrono::nanoseconds timeout = std::chrono::nanoseconds{0}) {
        const ramway_rpc_call_options c = call_options{.timeout = timeout}.c();
        return ramway::detail::outcome(ramway_rpc_ping(handle_.get(), &c));
    }
    /// The server's methods, in the order of their numbers.
    ramway::result<std::vector<method_info>> describe() {
        std::vector<method_info> all;
        // Nothing may unwind through C.
        const auto each = [](std::uint32_t number, const char *name, void *user) noexcept {
            auto *to = static_cast<std::vector<method_info> *>(user);
            to->push_back({number, name != nullptr ? std::optional<std::string>(name) : std::nullopt});
        };
        const auto code = ramway_rpc_describe(handle_.get(), nullptr, each, &all);
        return code == RAMWAY_OK ? ramway::result<std::vector<method_info>>(std::move(all))
                                 : ramway::result<std::vector<method_info>>(error(code));
    }
    /// How many calls the server lets this client have in flight. Those beyond wait here, in their order.
    std::uint32_t max_in_flight() const noexcept { return ramway_rpc_max_in_flight(handle_.get()); }
    /// How many are sent and have no final reply: also those that were cancelled, until the server has ended them.
    std::size_t in_flight() const noexcept { return ramway_rpc_in_flight(handle_.get()); }
    /// Receives what is there; then, whether a call that is made now is sent at once.
    bool is_ready() noexcept { return ramway_rpc_is_ready(handle_.get()); }
    /// The longest request: its metadata, rounded up to 16 bytes, and its body together.
    std::size_t max_request_len() const noexcept { return ramway_rpc_max_request_len(handle_.get()); }
    std::uint32_t peer_uid() const noexcept { return ramway_rpc_peer_uid(handle_.get()); }
    /// 0 if the server has no number here.
    std::uint32_t peer_pid() const noexcept { return ramway_rpc_peer_pid(handle_.get()); }
    bool is_peer_alive() const noexcept { return ramway_rpc_is_peer_alive(handle_.get()); }
    /// For event loops: readable when there is something to receive. Wait for it for at most due(); then poll with a
    /// time of 0 until it gives ramway::status::empty. Not to be read or closed.
    ramway::result<int> fd() { return ramway::detail::descriptor(ramway_rpc_fd(handle_.get())); }
    /// When to poll although the descriptor is not readable; ramway::forever: never.
    std::chrono::nanoseconds due() noexcept { return std::chrono::nanoseconds(ramway_rpc_due_ns(handle_.get())); }
    ramway::result<void> set_wait_policy(wait_policy policy) {
        return ramway::detail::outcome(
            ramway_rpc_set_wait_policy(handle_.get(), static_cast<std::uint32_t>(policy)));
    }
    /// Whether a wait gives ramway::status::interrupted when a signal handler ran.
    ramway::result<void> set_interruptible(bool yes) {
        return ramway::detail::outcome(ramway_rpc_set_interruptible(handle_.get(), yes));
    }
    /// Any thread, while the handle is open: ends the wait that is running, or the next one, with
    /// ramway::status::interrupted.
    void wake() const noexcept { (void)ramway_rpc_wake(handle_.get()); }
    /// Ends the connection: what is under way is cancelled. Going out of scope does the same.
    ramway::result<void> close() && {
        const auto code = ramway_rpc_close(handle_.get());
        // Else it is still open.
        if (code != RAMWAY_BUSY) {
            (void)handle_.release();
        }
        return ramway::detail::outcome(code);
    }
    /// For calls of ramway.h; stays ours.
    ramway_rpc_client *get() const noexcept { return handle_.get(); }

  private:
    struct waiting;
    /// Behind a pointer, so that a client can be moved.
    struct shared_state {
        std::unordered_map<std::uint64_t, std::shared_ptr<waiting>> callbacks;
        std::exception_ptr thrown;
    };
    struct waiting {
        callback done;
        shared_state *state;
    };

    client() = default;
    detail::under_way under_way(std::uint64_t number) const noexcept { return {handle_.get(), number}; }
    static call_error failed(ramway_status code) { return call_error(error(code)); }

    template <class F>
    ramway_status ask(F how, std::uint32_t method, bytes body, const call_options &o, waiting *to, std::uint64_t *number) {
        const ramway_rpc_call_options c = o.c();
        return how(handle_.get(), method, body.data(), body.size(), &c, to != nullptr ? &client::tell : nullptr, to,
                   number);
    }
    template <class F>
    result<std::uint64_t> ask_with(F how, std::uint32_t method, bytes body, const call_options &o, callback done) {
        auto to = std::make_shared<waiting>(waiting{std::move(done), state_.get()});
        std::uint64_t number = 0;
        const auto code = ask(how, method, body, o, to.get(), &number);
        if (code != RAMWAY_OK) {
            return failed(code);
        }
        state_->callbacks.emplace(number, std::move(to));
        return number;
    }
    /// Nothing may unwind through C.
    static void tell(std::uint64_t number, ramway_rpc_reply *from, void *user) noexcept {
        auto *state = static_cast<waiting *>(user)->state;
        const auto found = state->callbacks.find(number);
        if (found == state->callbacks.end()) {
            return;
        }
        // It may cancel itself.
        const auto to = found->second;
        if (!from->more) {
            state->callbacks.erase(found);
        }
#ifdef __cpp_exceptions
        try {
            to->done(taken(*from));
        } catch (...) {
            state->thrown = std::current_exception();
        }
#else
        to->done(taken(*from));
#endif
    }
    /// What a callback gets is its own.
    static result<reply> taken(ramway_rpc_reply &from) {
        if (from.status != RAMWAY_RPC_OK) {
            return call_error(from);
        }
        ramway_rpc_reply kept{};
        const ramway_status code = ramway_rpc_reply_keep(&from, &kept);
        return reply::of(code, std::move(kept));
    }

    // The callbacks go after the client that may call them.
    std::unique_ptr<shared_state> state_ = std::make_unique<shared_state>();
    ramway::detail::handle<ramway_rpc_client, ramway_rpc_close> handle_;
};

}  // namespace ramway::rpc

#endif
