/// The receiving end of a ring, and what a subscriber has in common with it. Part of ramway.hpp.
#ifndef RAMWAY_RECEIVER_HPP
#define RAMWAY_RECEIVER_HPP

#include "../ramway_inline.h"
#include "options.hpp"
#include "result.hpp"
#include "sender.hpp"
#include "tensor.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace ramway {

namespace detail {
/// What a message is read by, wherever its numbers stand: `Self` has plain(), what a ring's message says.
template <class Self>
struct viewing {
    std::span<const std::byte> bytes() const noexcept { return {static_cast<const std::byte *>(c().data), c().len}; }
    std::string_view text() const noexcept { return {static_cast<const char *>(c().data), c().len}; }
    /// The payload as a plain value, copied out; invalid_argument if the length is not that of T.
    template <class T>
        requires std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T>
    result<T> as() const {
        if (c().len != sizeof(T)) {
            return error(status::invalid_argument, "a message of " + std::to_string(c().len) +
                                                       " bytes read as a value of " + std::to_string(sizeof(T)));
        }
        T value;
        std::memcpy(std::addressof(value), c().data, sizeof(T));
        return value;
    }
    /// The payload as a tensor, in place; invalid_argument if it is none.
    ramway::result<ramway::tensor> tensor() const { return ramway::tensor::of(c()); }

  private:
    const ramway_message &c() const noexcept { return static_cast<const Self &>(*this).plain(); }
};
}  // namespace detail

/// A received message while somebody else sees to its release.
struct message_view : ramway_message, detail::viewing<message_view> {
    const ramway_message &plain() const noexcept { return *this; }
};
static_assert(sizeof(message_view) == sizeof(ramway_message));

namespace detail {
/// The calls of a ring's receiver that are inline, and what they give.
struct ring_receiving {
    using view = message_view;
    static constexpr auto recv = ramway_inline_recv;
    static constexpr auto recv_batch = ramway_inline_recv_batch;
    static constexpr auto release = ramway_inline_release;
};

template <class Self, class Calls>
class receiving;
}  // namespace detail

/// A received message: a view of the shared memory (or of a copy, where the publisher of a topic may overwrite it), given
/// back when it goes out of scope. Must not outlive its receiver.
template <class Calls>
class basic_message {
  public:
    basic_message(basic_message &&other) noexcept
        : receiver_(std::exchange(other.receiver_, nullptr)), view_(other.view_) {}
    basic_message &operator=(basic_message &&other) noexcept {
        if (this != &other) {
            release();
            receiver_ = std::exchange(other.receiver_, nullptr);
            view_ = other.view_;
        }
        return *this;
    }
    ~basic_message() { release(); }

    std::span<const std::byte> data() const noexcept { return view_.bytes(); }
    std::string_view text() const noexcept { return view_.text(); }
    std::size_t size() const noexcept { return view_.plain().len; }
    std::uint32_t type_id() const noexcept { return view_.plain().type_id; }
    std::uint64_t tag() const noexcept { return view_.plain().tag; }
    /// Of a topic: its number; the first message has 1.
    std::uint64_t seq() const noexcept
        requires requires(typename Calls::view view) { view.seq; }
    {
        return view_.seq;
    }
    /// Of a topic: when it was sent, in nanoseconds since 1970; 0 without topic_options::timestamps.
    std::uint64_t time() const noexcept
        requires requires(typename Calls::view view) { view.time; }
    {
        return view_.time;
    }
    /// Of a topic: how many messages were lost right before it.
    std::uint64_t lost() const noexcept
        requires requires(typename Calls::view view) { view.lost; }
    {
        return view_.lost;
    }
    template <class T>
    result<T> as() const {
        return view_.template as<T>();
    }
    /// The payload as a tensor, in place: as long as this message. invalid_argument if it is none.
    ramway::result<ramway::tensor> tensor() const { return view_.tensor(); }
    /// Gives it back now; the view is over.
    void release() noexcept {
        if (receiver_ != nullptr) {
            (void)Calls::release(std::exchange(receiver_, nullptr));
        }
    }

  private:
    template <class, class>
    friend class detail::receiving;
    basic_message(ramway_receiver *receiver, const typename Calls::view &view) : receiver_(receiver), view_(view) {}

    ramway_receiver *receiver_;
    typename Calls::view view_;
};

/// Several messages, given back together when it goes out of scope. Iterates over their views.
template <class Calls>
class basic_batch {
  public:
    using view = typename Calls::view;

    basic_batch(basic_batch &&other) noexcept
        : receiver_(std::exchange(other.receiver_, nullptr)), views_(other.views_) {}
    basic_batch &operator=(basic_batch &&) = delete;
    ~basic_batch() {
        if (receiver_ != nullptr) {
            (void)Calls::release(receiver_);
        }
    }

    std::size_t size() const noexcept { return views_.size(); }
    const view &operator[](std::size_t i) const noexcept { return views_[i]; }
    auto begin() const noexcept { return views_.begin(); }
    auto end() const noexcept { return views_.end(); }

  private:
    template <class, class>
    friend class detail::receiving;
    basic_batch(ramway_receiver *receiver, std::span<const view> views) : receiver_(receiver), views_(views) {}

    ramway_receiver *receiver_;
    std::span<const view> views_;
};

/// A message of a ring.
using message = basic_message<detail::ring_receiving>;
/// Messages of a ring.
using batch = basic_batch<detail::ring_receiving>;

/// Copies of what a copying receive said about its message.
struct meta {
    std::size_t len;
    std::uint32_t type_id;
    std::uint64_t tag;
};

namespace detail {
/// What a receiver and a subscriber do alike. Closes when it goes out of scope.
template <class Self, class Calls>
class receiving {
  public:
    using message = basic_message<Calls>;
    using batch = basic_batch<Calls>;
    using view = typename Calls::view;

    receiving() = default;

    /// Takes a handle over from C.
    static Self adopt(ramway_receiver *handle) noexcept {
        Self made;
        made.handle_.reset(handle);
        return made;
    }

    explicit operator bool() const noexcept { return handle_ != nullptr; }
    /// For calls of ramway.h; stays ours.
    ramway_receiver *get() const noexcept { return handle_.get(); }

    /// The next message; waits as long as it takes. status::closed or peer_dead after the last one.
    result<message> recv() { return take(RAMWAY_FOREVER); }
    /// Does not wait: status::empty.
    result<message> try_recv() { return take(detail::now); }
    result<message> recv_for(std::chrono::nanoseconds timeout) { return take(detail::ns(timeout)); }
    /// Up to room.size() messages, whose views are put into `room`; waits for the first one only.
    result<batch> recv_batch(std::span<view> room, std::chrono::nanoseconds timeout = forever) {
        std::size_t count = 0;
        auto code = Calls::recv_batch(get(), detail::ns(timeout), room.data(), room.size(), &count);
        if (code == RAMWAY_OK) [[likely]] {
            return batch(get(), room.first(count));
        }
        return error(code);
    }
    /// Messages one after another, each given back before the next is taken, until the stream ends:
    ///
    ///     auto messages = rx.messages();
    ///     for (const auto &message : messages) { ... }
    ///     if (messages.ended() != ramway::status::closed) { ... }
    class message_range {
      public:
        class iterator {
          public:
            using value_type = view;
            using difference_type = std::ptrdiff_t;
            using iterator_concept = std::input_iterator_tag;
            const view &operator*() const noexcept { return range_->view_; }
            const view *operator->() const noexcept { return &range_->view_; }
            iterator &operator++() {
                range_->next();
                return *this;
            }
            void operator++(int) { range_->next(); }
            friend bool operator==(const iterator &i, std::default_sentinel_t) noexcept {
                return i.range_->ended() != status::ok;
            }

          private:
            friend class message_range;
            explicit iterator(message_range *range) : range_(range) {}
            message_range *range_;
        };

        message_range(const message_range &) = delete;
        message_range &operator=(const message_range &) = delete;
        ~message_range() { release(); }

        iterator begin() {
            next();
            return iterator(this);
        }
        std::default_sentinel_t end() const noexcept { return {}; }
        /// Why it ended: closed is the good way. ok if it has not.
        status ended() const noexcept { return static_cast<status>(code_); }

      private:
        friend class receiving;
        message_range(ramway_receiver *receiver, std::int64_t timeout) : receiver_(receiver), timeout_(timeout) {}
        void release() noexcept {
            if (std::exchange(taken_, false)) {
                (void)Calls::release(receiver_);
            }
        }
        void next() {
            release();
            code_ = Calls::recv(receiver_, timeout_, &view_);
            taken_ = code_ == RAMWAY_OK;
        }

        ramway_receiver *receiver_;
        std::int64_t timeout_;
        view view_{};
        ramway_status code_ = RAMWAY_OK;
        bool taken_ = false;
    };
    /// `timeout`: how long to wait for each message.
    message_range messages(std::chrono::nanoseconds timeout = forever) {
        return message_range(get(), detail::ns(timeout));
    }

    std::uint64_t capacity() const noexcept { return ramway_receiver_capacity(get()); }
    std::uint32_t align() const noexcept { return ramway_receiver_align(get()); }
    std::uint64_t len() const noexcept { return ramway_receiver_len(get()); }
    bool is_peer_alive() const noexcept { return ramway_receiver_is_peer_alive(get()); }
    std::uint32_t peer_epoch() const noexcept { return ramway_receiver_peer_epoch(get()); }
    std::uint32_t epoch() const noexcept { return ramway_receiver_epoch(get()); }
    /// Waits until a sender is attached that lives and has not closed; gives its epoch. See ramway_receiver_wait_for_peer.
    result<std::uint32_t> wait_for_peer(std::chrono::nanoseconds timeout = forever) {
        std::uint32_t epoch = 0;
        auto code = ramway_receiver_wait_for_peer(get(), detail::ns(timeout), &epoch);
        return code == RAMWAY_OK ? result<std::uint32_t>(epoch) : result<std::uint32_t>(error(code));
    }
    /// Any thread, while the handle is open: ends the wait that is running, or the next one, with status::interrupted.
    void wake() const noexcept { (void)ramway_receiver_wake(get()); }
    /// The name it was opened by; empty without one.
    std::string_view name() const noexcept {
        const char *name = ramway_receiver_name(get());
        return name != nullptr ? name : "";
    }
    result<void> set_wait_policy(wait_policy policy) {
        return detail::outcome(ramway_receiver_set_wait_policy(get(), static_cast<std::uint32_t>(policy)));
    }
    result<void> set_interruptible(bool yes) {
        return detail::outcome(ramway_receiver_set_interruptible(get(), yes));
    }
    /// For event loops: readable when try_recv has something to say. Ours to close.
    result<int> readiness_fd() { return detail::descriptor(ramway_receiver_readiness_fd(get())); }
    /// Says that nothing more will be read; what the destructor does, with the chance of an error.
    result<void> close() { return detail::outcome(ramway_receiver_close(handle_.release())); }

  protected:
    template <class Open, class Options>
    static result<Self> make(Open open, const std::string &name, const Options &o) {
        ramway_receiver *out = nullptr;
        const auto c = o.c();
        auto code = open(name.c_str(), &c, &out);
        return code == RAMWAY_OK ? result<Self>(adopt(out)) : result<Self>(error(code));
    }
    /// Without a destructor: gives the handle up.
    ramway_receiver *release_handle() noexcept { return handle_.release(); }

  private:
    result<message> take(std::int64_t timeout) {
        view taken;
        auto code = Calls::recv(get(), timeout, &taken);
        if (code == RAMWAY_OK) [[likely]] {
            return message(get(), taken);
        }
        return error(code);
    }

    detail::handle<ramway_receiver, ramway_receiver_close> handle_;
};
}  // namespace detail

/// The receiving end of a ring: one per ring, in the whole system. Closes when it goes out of scope.
class receiver : public detail::receiving<receiver, detail::ring_receiving> {
  public:
    static result<receiver> create(const std::string &name, const options &o = {}) {
        return make(ramway_receiver_create, name, o);
    }
    static result<receiver> open(const std::string &name, const options &o = {}) {
        return make(ramway_receiver_open, name, o);
    }
    static result<receiver> open_or_create(const std::string &name, const options &o = {}) {
        return make(ramway_receiver_open_or_create, name, o);
    }
    /// The ring behind a descriptor of unnamed(), which stays the caller's.
    static result<receiver> from_fd(int fd, const options &o = {}) {
        ramway_receiver *out = nullptr;
        const ramway_options c = o.c();
        auto code = ramway_receiver_from_fd(fd, &c, &out);
        return code == RAMWAY_OK ? result<receiver>(adopt(out)) : result<receiver>(error(code));
    }
    /// See ramway_receiver_attach.
    static result<receiver> attach(std::span<std::byte> memory) {
        ramway_receiver *out = nullptr;
        auto code = ramway_receiver_attach(memory.data(), memory.size(), &out);
        return code == RAMWAY_OK ? result<receiver>(adopt(out)) : result<receiver>(error(code));
    }
    /// Copies the next message out, each byte once: safe against a peer that rewrites what it sent. too_large leaves
    /// the message where it is.
    result<meta> recv_into(std::span<std::byte> buffer, std::chrono::nanoseconds timeout = forever) {
        ramway_message m{};
        auto code = ramway_recv_into(get(), detail::ns(timeout), buffer.data(), buffer.size(), &m);
        if (code == RAMWAY_OK) [[likely]] {
            return meta{m.len, m.type_id, m.tag};
        }
        return error(code);
    }
};

/// A ring for two threads of this process.
inline result<std::pair<sender, receiver>> pair(std::uint64_t capacity) {
    ramway_sender *tx = nullptr;
    ramway_receiver *rx = nullptr;
    auto code = ramway_ring_pair(capacity, &tx, &rx);
    if (code != RAMWAY_OK) {
        return error(code);
    }
    return std::pair(sender::adopt(tx), receiver::adopt(rx));
}

/// A ring without a name, to be handed to a child process: gives a descriptor, which is the caller's to close, and
/// close-on-exec. Each process takes its role with sender::from_fd or receiver::from_fd. See ramway_ring_unnamed.
inline result<int> unnamed(const options &o = {}) {
    int fd = -1;
    const ramway_options c = o.c();
    auto code = ramway_ring_unnamed(&c, &fd);
    return code == RAMWAY_OK ? result<int>(fd) : result<int>(error(code));
}

}  // namespace ramway

#endif
