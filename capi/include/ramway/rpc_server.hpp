/// The side that is called. Part of ramway.hpp.
#ifndef RAMWAY_RPC_SERVER_HPP
#define RAMWAY_RPC_SERVER_HPP

#include "../ramway.h"
#include "peer.hpp"
#include "result.hpp"
#include "rpc.hpp"

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace ramway::rpc {

/// An error of the application, as a handler gives it: a number and a text, which the caller gets with status::application.
struct fault {
    std::uint32_t code = 0;
    std::string text{};
};

namespace detail {
using ramway::detail::ns;
using ramway::detail::outcome;

/// What a handler asks of a request of either kind. They answer ramway::status::invalid_argument once it was answered.
class asking {
  public:
    /// The method's number.
    std::uint32_t method() const noexcept { return ramway_rpc_request_method(handle_); }
    /// The request's bytes. Of a request that is read in place a client that is not trusted could rewrite them: copy
    /// what is decided on.
    std::span<const std::byte> body() const noexcept { return view(ramway_rpc_request_body); }
    std::string_view text() const noexcept {
        const auto all = body();
        return {reinterpret_cast<const char *>(all.data()), all.size()};
    }
    /// The request's metadata: bytes that the application defines.
    std::span<const std::byte> meta() const noexcept { return view(ramway_rpc_request_meta); }
    /// The client.
    ramway::peer peer() const noexcept {
        ramway_peer c{};
        (void)ramway_rpc_request_peer(handle_, &c);
        return ramway::peer::of(c);
    }
    /// How much time the call has left; empty without a limit.
    std::optional<std::chrono::nanoseconds> remaining() const noexcept {
        const std::int64_t left = ramway_rpc_request_remaining_ns(handle_);
        return left == RAMWAY_FOREVER ? std::nullopt : std::optional(std::chrono::nanoseconds(left));
    }
    /// Whether nobody wants the reply any more. It is still to be answered.
    bool is_cancelled() const noexcept { return ramway_rpc_request_is_cancelled(handle_); }
    /// Whether the caller wants a stream.
    bool is_stream() const noexcept { return ramway_rpc_request_is_stream(handle_); }
    /// Metadata of the reply, or of the next element. Before the reply.
    ramway::result<void> set_reply_meta(bytes meta) noexcept {
        return outcome(ramway_rpc_request_set_reply_meta(handle_, meta.data(), meta.size()));
    }

  protected:
    explicit asking(ramway_rpc_request *handle) noexcept : handle_(handle) {}

    ramway::result<void> answer(bytes body) { return outcome(ramway_rpc_request_reply(handle_, body.data(), body.size())); }
    template <class F>
    ramway::result<void> answer_with(std::size_t len, F &write) {
        struct call {
            F *write;
            std::exception_ptr thrown;
        } call{&write, nullptr};
        // Nothing may unwind through C.
        const auto fill = [](void *to, std::size_t room, void *user) noexcept -> std::size_t {
            auto *c = static_cast<struct call *>(user);
#ifdef __cpp_exceptions
            try {
                return (*c->write)(std::span(static_cast<std::byte *>(to), room));
            } catch (...) {
                // Not answered: the exception says how.
                c->thrown = std::current_exception();
                return SIZE_MAX;
            }
#else
            return (*c->write)(std::span(static_cast<std::byte *>(to), room));
#endif
        };
        const auto code = ramway_rpc_request_reply_with(handle_, len, fill, &call);
#ifdef __cpp_exceptions
        if (call.thrown) [[unlikely]] {
            std::rethrow_exception(call.thrown);
        }
#endif
        return outcome(code);
    }

    ramway_rpc_request *handle_;

  private:
    template <class F>
    std::span<const std::byte> view(F get) const noexcept {
        std::size_t len = 0;
        const void *data = get(handle_, &len);
        return {static_cast<const std::byte *>(data), data != nullptr ? len : 0};
    }
};
}  // namespace detail

/// A call whose handler answers it before it returns: it reads the request, and writes the reply, in place. Valid until the
/// handler returns.
class request : public detail::asking {
  public:
    request(const request &) = delete;
    request &operator=(const request &) = delete;

    /// Answers with these bytes. Once.
    ramway::result<void> reply(bytes body) { return answer(body); }
    /// Has the reply written in place, where there is room: `write` gets a std::span<std::byte> of `len` bytes that
    /// hold anything, and says how many of them, from the first one on, are the reply. See
    /// ramway_rpc_request_reply_with.
    template <std::invocable<std::span<std::byte>> F>
    ramway::result<void> reply_with(std::size_t len, F &&write) {
        return answer_with(len, write);
    }
    /// Ends the call with an error of the application.
    ramway::result<void> fail(std::uint32_t code, const std::string &text) {
        return detail::outcome(ramway_rpc_request_fail(handle_, code, text.c_str()));
    }

  private:
    friend class server;
    using detail::asking::asking;
};

/// A call that is answered later, from any thread: it holds a copy of the request. One thread at a time uses it.
/// Without an answer it ends with status::handler_failed when it goes out of scope.
class call : public detail::asking {
  public:
    call(call &&other) noexcept : asking(std::exchange(other.handle_, nullptr)) {}
    call &operator=(call &&other) noexcept {
        if (this != &other) {
            let_go();
            handle_ = std::exchange(other.handle_, nullptr);
        }
        return *this;
    }
    ~call() { let_go(); }

    /// Answers with these bytes; of a stream they are the last element.
    ramway::result<void> reply(bytes body) { return over(answer(body)); }
    /// As request::reply_with.
    template <std::invocable<std::span<std::byte>> F>
    ramway::result<void> reply_with(std::size_t len, F &&write) {
        return over(answer_with(len, write));
    }
    /// Ends the call with an error of the application.
    ramway::result<void> fail(std::uint32_t code, const std::string &text) {
        return over(detail::outcome(ramway_rpc_request_fail(handle_, code, text.c_str())));
    }
    /// Ends the call with status::handler_failed: the handler failed in a way that it did not mean to.
    ramway::result<void> fail_unexpectedly(const std::string &text) {
        return over(detail::outcome(ramway_rpc_request_fail_unexpectedly(handle_, text.c_str())));
    }
    /// Completes a stream, without another element.
    ramway::result<void> finish() { return over(detail::outcome(ramway_rpc_request_finish(handle_))); }

    /// Sends an element of a stream, waiting until the caller has room for it. Not on the server's thread, which
    /// receives the news of room. ramway::status::interrupted if nobody wants the stream any more.
    ramway::result<void> send(bytes element) { return put(element, RAMWAY_FOREVER); }
    ramway::result<void> send_for(std::chrono::nanoseconds timeout, bytes element) {
        return put(element, detail::ns(timeout));
    }
    /// Does not wait: ramway::status::full.
    ramway::result<void> try_send(bytes element) { return put(element, RAMWAY_TRY); }
    /// Has `changed` called, on the server's thread, whenever the call is cancelled or another element can be sent: see
    /// ramway_rpc_request_on_change. It must not throw, nor block.
    ramway::result<void> on_change(std::function<void()> changed) {
        auto kept = std::make_unique<std::function<void()>>(std::move(changed));
        const auto run = [](void *user) noexcept { (*static_cast<std::function<void()> *>(user))(); };
        const auto drop = [](void *user) noexcept { delete static_cast<std::function<void()> *>(user); };
        const auto code = ramway_rpc_request_on_change(handle_, run, drop, kept.get());
        if (code == RAMWAY_OK) {
            (void)kept.release();
        }
        return detail::outcome(code);
    }
    /// Whether it was answered, or moved from.
    bool is_over() const noexcept { return handle_ == nullptr; }

  private:
    friend class server;
    using detail::asking::asking;

    ramway::result<void> put(bytes element, std::int64_t timeout) {
        return detail::outcome(ramway_rpc_request_send(handle_, element.data(), element.size(), timeout));
    }
    /// A request that was answered is over.
    ramway::result<void> over(ramway::result<void> &&outcome) {
        if (outcome) {
            handle_ = nullptr;
        }
        return std::move(outcome);
    }
    void let_go() noexcept {
        if (handle_ != nullptr) {
            (void)ramway_rpc_request_fail_unexpectedly(std::exchange(handle_, nullptr),
                                                       "the handler let go of the call without an answer");
        }
    }
};

/// Serves calls of any number of clients at a name. While one thread is in a call, another one's gets
/// ramway::status::busy, and so does a handler's; except shutdown and wake.
///
///     auto server = ramway::rpc::server::bind("store").value();
///     server.method(7, [](ramway::rpc::request &request) { return std::string("value of ") + std::string(request.text()); }).value();
///     server.run().value();
class server {
  public:
    /// Nothing is served before run.
    static ramway::result<server> bind(const std::string &name, const server_options &o = {}) {
        server made;
        ramway_rpc_server *out = nullptr;
        const ramway_rpc_server_options c = o.c();
        const auto code = ramway_rpc_server_bind(name.c_str(), &c, &out);
        made.handle_.reset(out);
        return code == RAMWAY_OK ? ramway::result<server>(std::move(made)) : ramway::result<server>(error(code));
    }

    /// A method by number, with an inline handler: `handler(request &)` runs on the thread that serves, and gives bytes
    /// (a string, a vector, a span), a result of bytes or a fault, or nothing if it has answered itself. An exception
    /// ends the call: a fault that is thrown with status::application, any other with status::handler_failed. See
    /// ramway_rpc_server_method.
    template <std::invocable<request &> F>
    ramway::result<void> method(std::uint32_t number, F handler) {
        return add(ramway_rpc_server_method, number, nullptr, answering(std::move(handler)));
    }
    /// By name: the number is method_id(name).
    template <std::invocable<request &> F>
    ramway::result<void> method(const std::string &name, F handler) {
        return add(ramway_rpc_server_method, method_id(name), name.c_str(), answering(std::move(handler)));
    }
    /// A method by number whose calls are answered later, and for streams: `handler(call)` runs on the thread that
    /// serves. An exception ends the call if nobody else has it.
    template <std::invocable<call> F>
    ramway::result<void> deferred(std::uint32_t number, F handler) {
        return add(ramway_rpc_server_deferred, number, nullptr, deferring(std::move(handler)));
    }
    /// By name: the number is method_id(name).
    template <std::invocable<call> F>
    ramway::result<void> deferred(const std::string &name, F handler) {
        return add(ramway_rpc_server_deferred, method_id(name), name.c_str(), deferring(std::move(handler)));
    }

    /// Serves for `timeout` (ramway::status::timed_out), or until it is shut down. ramway::status::interrupted by wake.
    ramway::result<void> run(std::chrono::nanoseconds timeout = forever) {
        return detail::outcome(ramway_rpc_server_run(handle_.get(), detail::ns(timeout)));
    }
    /// Does what there is to do without waiting, for event loops. ramway::status::closed once it was shut down.
    ramway::result<void> poll() { return detail::outcome(ramway_rpc_server_poll(handle_.get())); }
    /// Readable when poll has something to do. Wait for it for at most due(). Not to be read or closed.
    ramway::result<int> fd() { return ramway::detail::descriptor(ramway_rpc_server_fd(handle_.get())); }
    /// When to poll although the descriptor is not readable; ramway::forever: never.
    std::chrono::nanoseconds due() noexcept { return std::chrono::nanoseconds(ramway_rpc_server_due_ns(handle_.get())); }
    /// Any thread, a handler and a signal handler: takes no new call, waits for those that run for at most `limit`,
    /// cancels the rest, and closes; all that in run, which then returns. See ramway_rpc_server_shutdown.
    void shutdown(std::chrono::nanoseconds limit) const noexcept {
        (void)ramway_rpc_server_shutdown(handle_.get(), limit.count() < 0 && limit != forever ? 0 : limit.count());
    }
    /// Any thread, a handler and a signal handler: ends the run that runs, or the next one, with
    /// ramway::status::interrupted.
    void wake() const noexcept { (void)ramway_rpc_server_wake(handle_.get()); }
    /// How many clients are connected.
    std::size_t clients() const noexcept { return ramway_rpc_server_clients(handle_.get()); }
    /// The socket's path.
    std::string path() const {
        const char *path = ramway_rpc_server_path(handle_.get());
        return path != nullptr ? path : "";
    }
    /// For calls of ramway.h; stays ours.
    ramway_rpc_server *get() const noexcept { return handle_.get(); }

  private:
    using running = std::function<void(ramway_rpc_request *)>;

    server() = default;

    template <class T>
    static void answer(request &to, T &&value) {
        (void)to.reply(bytes(value));
    }
    template <class T>
    static void answer(request &to, ramway::result<T, fault> &&value) {
        if (value) {
            answer(to, std::move(*value));
        } else {
            (void)to.fail(value.error().code, value.error().text);
        }
    }
    /// A handler that cannot be copied is kept too.
    template <class F>
    static running answering(F handler) {
        auto kept = std::make_shared<F>(std::move(handler));
        return [kept](ramway_rpc_request *c) {
            guarded(c, [&] {
                request to(c);
                if constexpr (std::is_void_v<std::invoke_result_t<F &, request &>>) {
                    (*kept)(to);
                } else {
                    answer(to, (*kept)(to));
                }
            });
        };
    }
    template <class F>
    static running deferring(F handler) {
        auto kept = std::make_shared<F>(std::move(handler));
        // The call is the handler's: what it leaves of it when it throws ends by itself.
        return [kept](ramway_rpc_request *c) {
#ifdef __cpp_exceptions
            try {
                (*kept)(call(c));
            } catch (...) {
            }
#else
            (*kept)(call(c));
#endif
        };
    }
    template <class F>
    static void guarded([[maybe_unused]] ramway_rpc_request *c, F run) noexcept {
#ifdef __cpp_exceptions
        // What was answered before stays so.
        try {
            run();
        } catch (const fault &cause) {
            (void)ramway_rpc_request_fail(c, cause.code, cause.text.c_str());
        } catch (const std::exception &cause) {
            (void)ramway_rpc_request_fail_unexpectedly(c, cause.what());
        } catch (...) {
            (void)ramway_rpc_request_fail_unexpectedly(c, "the handler threw something that is no std::exception");
        }
#else
        run();
#endif
    }
    template <class A>
    ramway::result<void> add(A to, std::uint32_t number, const char *name, running handler) {
        auto kept = std::make_unique<running>(std::move(handler));
        const auto run = [](ramway_rpc_request *c, void *user) noexcept { (*static_cast<running *>(user))(c); };
        const auto code = to(handle_.get(), number, name, run, kept.get());
        if (code == RAMWAY_OK) {
            handlers_.push_back(std::move(kept));
        }
        return detail::outcome(code);
    }

    // The handlers go after the server that may call them.
    std::vector<std::unique_ptr<running>> handlers_;
    ramway::detail::handle<ramway_rpc_server, ramway_rpc_server_close> handle_;
};

}  // namespace ramway::rpc

#endif
