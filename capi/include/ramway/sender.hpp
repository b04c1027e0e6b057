/// The sending end of a ring, and what a publisher has in common with it. Part of ramway.hpp.
#ifndef RAMWAY_SENDER_HPP
#define RAMWAY_SENDER_HPP

#include "../ramway_inline.h"
#include "options.hpp"
#include "result.hpp"
#include "tensor.hpp"

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace ramway {

namespace detail {
/// The calls of a ring's sender that are inline.
struct ring_sending {
    static constexpr auto send = ramway_inline_send;
    static constexpr auto reserve = ramway_inline_reserve;
    static constexpr auto commit = ramway_inline_commit;
    static constexpr auto commit_unflushed = ramway_inline_commit_unflushed;
    static constexpr auto flush = ramway_inline_flush;
    static constexpr auto abort = ramway_inline_abort;
};
}  // namespace detail

/// Room for one message, to be written in place. Aborts when it goes out of scope uncommitted: nothing of it remains.
/// Must not outlive its sender.
template <class Calls>
class basic_slot {
  public:
    basic_slot(basic_slot &&other) noexcept : sender_(std::exchange(other.sender_, nullptr)), data_(other.data_) {}
    basic_slot &operator=(basic_slot &&) = delete;
    ~basic_slot() {
        if (sender_ != nullptr) {
            (void)Calls::abort(sender_);
        }
    }

    std::span<std::byte> data() const noexcept { return data_; }
    std::size_t size() const noexcept { return data_.size(); }
    /// Sends the first `len` bytes, visible at once; type id and tag are 0 where they are left out.
    result<void> commit(std::uint32_t type_id, std::uint64_t tag, std::size_t len) && {
        return done(Calls::commit(sender_, type_id, tag, len));
    }
    result<void> commit(std::size_t len) && { return std::move(*this).commit(0, 0, len); }
    /// Visible only with the next flush or flushed message.
    result<void> commit_unflushed(std::uint32_t type_id, std::uint64_t tag, std::size_t len) && {
        return done(Calls::commit_unflushed(sender_, type_id, tag, len));
    }
    result<void> commit_unflushed(std::size_t len) && { return std::move(*this).commit_unflushed(0, 0, len); }

  private:
    template <class, class>
    friend class detail::sending;
    basic_slot(ramway_sender *sender, void *data, std::size_t len)
        : sender_(sender), data_(static_cast<std::byte *>(data), len) {}
    result<void> done(ramway_status code) {
        if (code == RAMWAY_OK) [[likely]] {
            sender_ = nullptr;
            return {};
        }
        return error(code);
    }

    ramway_sender *sender_;
    std::span<std::byte> data_;
};

/// Room in a ring.
using slot = basic_slot<detail::ring_sending>;

namespace detail {
/// What a sender and a publisher do alike. Closes when it goes out of scope; if an exception ends that scope, it abandons,
/// so that half a stream does not pass for a whole one: the receiver gets peer_dead. An empty one (moved from, or a bus's
/// direction that does not exist) answers invalid_argument.
template <class Self, class Calls>
class sending {
  public:
    using slot = basic_slot<Calls>;

    sending() = default;
    sending(sending &&) = default;
    sending &operator=(sending &&) = default;
    ~sending() {
        if (handle_ != nullptr && std::uncaught_exceptions() > unwinding_) {
            (void)ramway_sender_abandon(handle_.release());
        }
    }

    /// Takes a handle over from C.
    static Self adopt(ramway_sender *handle) noexcept {
        Self made;
        made.handle_.reset(handle);
        return made;
    }

    explicit operator bool() const noexcept { return handle_ != nullptr; }
    /// For calls of ramway.h; stays ours.
    ramway_sender *get() const noexcept { return handle_.get(); }

    /// Sends a message, visible at once; waits for room as long as it takes.
    result<void> send(std::uint32_t type_id, bytes data) { return put(type_id, data, 0, RAMWAY_FOREVER); }
    result<void> send(std::uint32_t type_id, std::uint64_t tag, bytes data) {
        return put(type_id, data, tag, RAMWAY_FOREVER);
    }
    /// Does not wait: status::full.
    result<void> try_send(std::uint32_t type_id, bytes data) { return put(type_id, data, 0, detail::now); }
    result<void> try_send(std::uint32_t type_id, std::uint64_t tag, bytes data) {
        return put(type_id, data, tag, detail::now);
    }
    result<void> send_for(std::chrono::nanoseconds timeout, std::uint32_t type_id, bytes data) {
        return put(type_id, data, 0, detail::ns(timeout));
    }
    result<void> send_for(std::chrono::nanoseconds timeout, std::uint32_t type_id, std::uint64_t tag, bytes data) {
        return put(type_id, data, tag, detail::ns(timeout));
    }
    /// Sends one message that is gathered from several pieces.
    result<void> send_vectored(std::uint32_t type_id, std::uint64_t tag, std::span<const bytes> pieces,
                               std::chrono::nanoseconds timeout = forever) {
        std::vector<ramway_bytes> c;
        c.reserve(pieces.size());
        for (const bytes &piece : pieces) {
            c.push_back({piece.data(), piece.size()});
        }
        return detail::outcome(ramway_send_vectored(get(), type_id, tag, c.data(), c.size(), detail::ns(timeout)));
    }
    /// Sends a plain value by its bytes; message::as<T>() reads it.
    template <class T>
        requires std::is_trivially_copyable_v<T>
    result<void> send_value(std::uint32_t type_id, const T &value) {
        return send_value(type_id, 0, value);
    }
    template <class T>
        requires std::is_trivially_copyable_v<T>
    result<void> send_value(std::uint32_t type_id, std::uint64_t tag, const T &value) {
        return send(type_id, tag, bytes(std::as_bytes(std::span<const T, 1>(std::addressof(value), 1))));
    }
    /// Sends every element of a range of bytes-like things and makes them visible together; gives how many. A failure
    /// or the time-out, which is for all of them, after the first one ends the batch with the number sent so far.
    template <std::ranges::input_range R>
        requires std::constructible_from<bytes, std::ranges::range_reference_t<R>>
    result<std::size_t> send_batch(std::uint32_t type_id, R &&messages) {
        return send_batch(type_id, 0, std::forward<R>(messages));
    }
    template <std::ranges::input_range R>
        requires std::constructible_from<bytes, std::ranges::range_reference_t<R>>
    result<std::size_t> send_batch(std::uint32_t type_id, std::uint64_t tag, R &&messages,
                                   std::chrono::nanoseconds timeout = forever) {
        std::int64_t left = detail::ns(timeout);
        const auto until = left > 0 ? std::chrono::steady_clock::now() + timeout : std::chrono::steady_clock::time_point{};
        std::size_t sent = 0;
        for (auto &&one : messages) {
            const bytes data(one);
            void *to = nullptr;
            auto code = Calls::reserve(get(), data.size(), detail::now, &to);
            if (code == RAMWAY_FULL && left != detail::now) {
                if (left > 0) {
                    left = std::max<std::int64_t>(
                        std::chrono::duration_cast<std::chrono::nanoseconds>(until - std::chrono::steady_clock::now()).count(), 1);
                }
                code = Calls::reserve(get(), data.size(), left, &to);
            }
            if (code == RAMWAY_OK) {
                if (data.size() != 0) {
                    std::memcpy(to, data.data(), data.size());
                }
                code = Calls::commit_unflushed(get(), type_id, tag, data.size());
                if (code != RAMWAY_OK) {
                    error why(code);
                    (void)Calls::abort(get());
                    if (sent == 0) {
                        return why;
                    }
                    break;
                }
                ++sent;
            } else if (sent == 0) {
                return error(code);
            } else {
                break;
            }
        }
        auto code = Calls::flush(get());
        return code == RAMWAY_OK ? result<std::size_t>(sent) : result<std::size_t>(error(code));
    }

    result<slot> reserve(std::size_t len) { return open_slot(len, RAMWAY_FOREVER); }
    /// Does not wait: status::full.
    result<slot> try_reserve(std::size_t len) { return open_slot(len, detail::now); }
    result<slot> reserve_for(std::chrono::nanoseconds timeout, std::size_t len) {
        return open_slot(len, detail::ns(timeout));
    }

    /// Sends a tensor: any contiguous range of elements, in C order, and its shape; waits for room as long as it takes.
    ///
    ///     tx.send_tensor({2, 3}, std::vector<float>(6));
    ///
    /// invalid_argument if there are not as many elements as the shape says.
    template <std::ranges::contiguous_range R>
        requires(std::ranges::sized_range<R> && tensor_element<std::ranges::range_value_t<R>>)
    result<void> send_tensor(shape dims, const R &elements) {
        return put_tensor(type_of<R>, bytes(elements), dims, 0, RAMWAY_FOREVER);
    }
    template <std::ranges::contiguous_range R>
        requires(std::ranges::sized_range<R> && tensor_element<std::ranges::range_value_t<R>>)
    result<void> send_tensor(shape dims, std::uint64_t tag, const R &elements) {
        return put_tensor(type_of<R>, bytes(elements), dims, tag, RAMWAY_FOREVER);
    }
    /// Does not wait: status::full.
    template <std::ranges::contiguous_range R>
        requires(std::ranges::sized_range<R> && tensor_element<std::ranges::range_value_t<R>>)
    result<void> try_send_tensor(shape dims, std::uint64_t tag, const R &elements) {
        return put_tensor(type_of<R>, bytes(elements), dims, tag, detail::now);
    }
    template <std::ranges::contiguous_range R>
        requires(std::ranges::sized_range<R> && tensor_element<std::ranges::range_value_t<R>>)
    result<void> send_tensor_for(std::chrono::nanoseconds timeout, shape dims, std::uint64_t tag, const R &elements) {
        return put_tensor(type_of<R>, bytes(elements), dims, tag, detail::ns(timeout));
    }
    /// The same of a type that is known at run time only, by the elements' bytes.
    result<void> send_tensor(dtype type, shape dims, std::uint64_t tag, bytes elements,
                             std::chrono::nanoseconds timeout = forever) {
        return put_tensor(type, elements, dims, tag, detail::ns(timeout));
    }
    /// Room for a tensor whose elements are written in place.
    template <tensor_element T>
    result<tensor_slot<T>> reserve_tensor(shape dims, std::chrono::nanoseconds timeout = forever) {
        return open_tensor<T>(element<T>::type, dims, detail::ns(timeout));
    }
    /// Does not wait: status::full.
    template <tensor_element T>
    result<tensor_slot<T>> try_reserve_tensor(shape dims) {
        return open_tensor<T>(element<T>::type, dims, detail::now);
    }
    /// The same of a type that is known at run time only, as bytes.
    result<tensor_slot<std::byte>> reserve_tensor(dtype type, shape dims, std::chrono::nanoseconds timeout = forever) {
        return open_tensor<std::byte>(type, dims, detail::ns(timeout));
    }

    /// Makes what was committed unflushed visible.
    result<void> flush() { return detail::outcome(Calls::flush(get())); }

    std::uint64_t capacity() const noexcept { return ramway_sender_capacity(get()); }
    std::uint32_t align() const noexcept { return ramway_sender_align(get()); }
    std::uint64_t max_message_len() const noexcept { return ramway_sender_max_message_len(get()); }
    std::uint64_t len() const noexcept { return ramway_sender_len(get()); }
    bool is_peer_alive() const noexcept { return ramway_sender_is_peer_alive(get()); }
    std::uint32_t peer_epoch() const noexcept { return ramway_sender_peer_epoch(get()); }
    std::uint32_t epoch() const noexcept { return ramway_sender_epoch(get()); }
    /// Waits until a receiver is attached that lives and has not closed; gives its epoch. See ramway_sender_wait_for_peer.
    result<std::uint32_t> wait_for_peer(std::chrono::nanoseconds timeout = forever) {
        std::uint32_t epoch = 0;
        auto code = ramway_sender_wait_for_peer(get(), detail::ns(timeout), &epoch);
        return code == RAMWAY_OK ? result<std::uint32_t>(epoch) : result<std::uint32_t>(error(code));
    }
    /// Any thread, while the handle is open: ends the wait that is running, or the next one, with status::interrupted.
    void wake() const noexcept { (void)ramway_sender_wake(get()); }
    /// The name it was opened by; empty without one.
    std::string_view name() const noexcept {
        const char *name = ramway_sender_name(get());
        return name != nullptr ? name : "";
    }
    /// The tag of the last visible message, by whichever sender; result empty (status::empty) before the first.
    result<std::uint64_t> last_tag() const {
        std::uint64_t tag = 0;
        return ramway_sender_last_tag(get(), &tag) ? result<std::uint64_t>(tag)
                                                   : result<std::uint64_t>(error(RAMWAY_EMPTY));
    }
    result<void> set_wait_policy(wait_policy policy) {
        return detail::outcome(ramway_sender_set_wait_policy(get(), static_cast<std::uint32_t>(policy)));
    }
    result<void> set_interruptible(bool yes) { return detail::outcome(ramway_sender_set_interruptible(get(), yes)); }
    /// For event loops: readable when a try_ call has something else to say than the last full. Ours to close.
    result<int> readiness_fd() { return detail::descriptor(ramway_sender_readiness_fd(get())); }
    /// Flushes and says that this was all; what the destructor does, with the chance of an error.
    result<void> close() { return detail::outcome(ramway_sender_close(handle_.release())); }
    /// Gives up without saying so: the receiver gets peer_dead after what was flushed.
    result<void> abandon() { return detail::outcome(ramway_sender_abandon(handle_.release())); }

  protected:
    template <class Open, class Options>
    static result<Self> make(Open open, const std::string &name, const Options &o) {
        ramway_sender *out = nullptr;
        const auto c = o.c();
        auto code = open(name.c_str(), &c, &out);
        return code == RAMWAY_OK ? result<Self>(adopt(out)) : result<Self>(error(code));
    }

  private:
    result<void> put(std::uint32_t type_id, bytes data, std::uint64_t tag, std::int64_t timeout) {
        return detail::outcome(Calls::send(get(), type_id, tag, data.data(), data.size(), timeout));
    }
    result<slot> open_slot(std::size_t len, std::int64_t timeout) {
        void *to = nullptr;
        auto code = Calls::reserve(get(), len, timeout, &to);
        if (code == RAMWAY_OK) [[likely]] {
            return slot(get(), to, len);
        }
        return error(code);
    }

    template <class R>
    static constexpr dtype type_of = element<std::ranges::range_value_t<R>>::type;
    result<void> put_tensor(dtype type, bytes data, shape dims, std::uint64_t tag, std::int64_t timeout) {
        return detail::outcome(ramway_send_tensor(get(), type.c(), dims.data(), dims.size(), tag, data.data(),
                                                  data.size(), timeout));
    }
    template <class T>
    result<tensor_slot<T>> open_tensor(dtype type, shape dims, std::int64_t timeout) {
        void *to = nullptr;
        std::size_t nbytes = 0;
        auto code = ramway_reserve_tensor(get(), type.c(), dims.data(), dims.size(), timeout, &to, &nbytes);
        if (code == RAMWAY_OK) [[likely]] {
            return tensor_slot<T>(get(), to, nbytes);
        }
        return error(code);
    }

    detail::handle<ramway_sender, ramway_sender_close> handle_;
    /// Exceptions that were on their way when this was made: those say nothing about it.
    int unwinding_ = std::uncaught_exceptions();
};
}  // namespace detail

/// The sending end of a ring: one per ring, in the whole system. Closes when it goes out of scope; if an exception ends
/// that scope, it abandons, so that half a stream does not pass for a whole one: the receiver gets peer_dead. An empty
/// one (moved from, or a bus's direction that does not exist) answers invalid_argument.
class sender : public detail::sending<sender, detail::ring_sending> {
  public:
    static result<sender> create(const std::string &name, const options &o = {}) {
        return make(ramway_sender_create, name, o);
    }
    static result<sender> open(const std::string &name, const options &o = {}) {
        return make(ramway_sender_open, name, o);
    }
    static result<sender> open_or_create(const std::string &name, const options &o = {}) {
        return make(ramway_sender_open_or_create, name, o);
    }
    /// The ring behind a descriptor of unnamed(), which stays the caller's.
    static result<sender> from_fd(int fd, const options &o = {}) {
        ramway_sender *out = nullptr;
        const ramway_options c = o.c();
        auto code = ramway_sender_from_fd(fd, &c, &out);
        return code == RAMWAY_OK ? result<sender>(adopt(out)) : result<sender>(error(code));
    }
    /// See ramway_sender_attach.
    static result<sender> attach(std::span<std::byte> memory) {
        ramway_sender *out = nullptr;
        auto code = ramway_sender_attach(memory.data(), memory.size(), &out);
        return code == RAMWAY_OK ? result<sender>(adopt(out)) : result<sender>(error(code));
    }
};

}  // namespace ramway

#endif
