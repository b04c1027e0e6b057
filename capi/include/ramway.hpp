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
/// and region.
#ifndef RAMWAY_HPP
#define RAMWAY_HPP

#include "ramway.h"
#include "ramway_inline.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iterator>
#include <memory>
#include <new>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace ramway {

/// The numbers that all of Ramway's languages share: see ramway_status.
enum class status : int {
    ok = RAMWAY_OK,
    not_found = RAMWAY_NOT_FOUND,
    already_exists = RAMWAY_ALREADY_EXISTS,
    invalid_argument = RAMWAY_INVALID_ARGUMENT,
    busy = RAMWAY_BUSY,
    full = RAMWAY_FULL,
    empty = RAMWAY_EMPTY,
    too_large = RAMWAY_TOO_LARGE,
    timed_out = RAMWAY_TIMED_OUT,
    closed = RAMWAY_CLOSED,
    detached = RAMWAY_DETACHED,
    peer_dead = RAMWAY_PEER_DEAD,
    corrupt = RAMWAY_CORRUPT,
    abi_mismatch = RAMWAY_ABI_MISMATCH,
    permission_denied = RAMWAY_PERMISSION_DENIED,
    no_space = RAMWAY_NO_SPACE,
    interrupted = RAMWAY_INTERRUPTED,
    unsupported = RAMWAY_UNSUPPORTED,
    os = RAMWAY_OS,
};

/// How a handle waits: see RAMWAY_WAIT_SPIN and its siblings.
enum class wait_policy : std::uint32_t {
    automatic = RAMWAY_WAIT_DEFAULT,
    spin = RAMWAY_WAIT_SPIN,
    hybrid = RAMWAY_WAIT_HYBRID,
    block = RAMWAY_WAIT_BLOCK,
};

/// As a time-out: as long as it takes.
inline constexpr std::chrono::nanoseconds forever{RAMWAY_FOREVER};

namespace detail {
inline constexpr std::int64_t now = RAMWAY_TRY;

/// A negative time that was computed (a deadline that has passed) does not mean for ever: only `forever` does.
constexpr std::int64_t ns(std::chrono::nanoseconds timeout) noexcept {
    if (timeout == forever) {
        return RAMWAY_FOREVER;
    }
    return timeout.count() < 0 ? 0 : timeout.count();
}
}  // namespace detail

/// What went wrong: a code to decide on, and a message that says what was tried, on which name, and what to do.
class error {
  public:
    error() = default;
    /// The error behind a status that a call of this thread has just returned.
    explicit error(ramway_status code) : code_(static_cast<status>(code)) {
        // Full, empty and timed out have no text of their own: a loop that meets them does not allocate.
        if (code != RAMWAY_FULL && code != RAMWAY_EMPTY && code != RAMWAY_TIMED_OUT) {
            errno_ = ramway_last_errno();
            message_ = ramway_last_error();
        }
    }
    error(status code, std::string message) : code_(code), message_(std::move(message)) {}

    status code() const noexcept { return code_; }
    /// The operating system's errno, 0 if it had no part in it.
    int os_error() const noexcept { return errno_; }
    const char *what() const noexcept {
        return message_.empty() ? ramway_strerror(static_cast<int>(code_)) : message_.c_str();
    }

  private:
    status code_ = status::ok;
    int errno_ = 0;
    std::string message_;
};

/// What result<T>::value() throws.
class exception : public std::exception {
  public:
    explicit exception(ramway::error error) : error_(std::make_shared<ramway::error>(std::move(error))) {}
    const ramway::error &error() const noexcept { return *error_; }
    status code() const noexcept { return error_->code(); }
    const char *what() const noexcept override { return error_->what(); }

  private:
    // Shared, because copying an exception must not throw.
    std::shared_ptr<const ramway::error> error_;
};

namespace detail {
[[noreturn]] inline void raise([[maybe_unused]] error &&cause) {
#ifdef __cpp_exceptions
    throw exception(std::move(cause));
#else
    std::abort();
#endif
}
}  // namespace detail

/// A T, or the error for which there is none: the part of std::expected that is needed here.
template <class T>
class [[nodiscard]] result {
  public:
    result(T value) : has_(true) { std::construct_at(&value_, std::move(value)); }
    result(ramway::error cause) : has_(false) { std::construct_at(&error_, std::move(cause)); }
    result(result &&other) noexcept : has_(other.has_) {
        if (has_) {
            std::construct_at(&value_, std::move(other.value_));
        } else {
            std::construct_at(&error_, std::move(other.error_));
        }
    }
    result &operator=(result &&other) noexcept {
        if (this != &other) {
            std::destroy_at(this);
            std::construct_at(this, std::move(other));
        }
        return *this;
    }
    ~result() {
        if (has_) {
            std::destroy_at(&value_);
        } else {
            std::destroy_at(&error_);
        }
    }

    bool has_value() const noexcept { return has_; }
    explicit operator bool() const noexcept { return has_; }
    /// Only if there is a value.
    T &operator*() & noexcept { return value_; }
    const T &operator*() const & noexcept { return value_; }
    T &&operator*() && noexcept { return std::move(value_); }
    T *operator->() noexcept { return &value_; }
    const T *operator->() const noexcept { return &value_; }
    /// Only if there is none.
    const ramway::error &error() const noexcept { return error_; }
    /// status::ok if there is a value.
    status code() const noexcept { return has_ ? status::ok : error_.code(); }
    /// The value; without one, throws ramway::exception (aborts in a program without exceptions).
    T &value() & {
        check();
        return value_;
    }
    T value() && {
        check();
        return std::move(value_);
    }

  private:
    void check() {
        if (!has_) {
            detail::raise(std::move(error_));
        }
    }

    union {
        T value_;
        ramway::error error_;
    };
    bool has_;
};

/// Success, or the error for which there is none.
template <>
class [[nodiscard]] result<void> {
  public:
    result() = default;
    result(ramway::error cause) : error_(std::move(cause)) {}

    bool has_value() const noexcept { return error_.code() == status::ok; }
    explicit operator bool() const noexcept { return has_value(); }
    const ramway::error &error() const noexcept { return error_; }
    status code() const noexcept { return error_.code(); }
    void value() && {
        if (!has_value()) {
            detail::raise(std::move(error_));
        }
    }
    void value() & {
        if (!has_value()) {
            detail::raise(ramway::error(error_));
        }
    }

  private:
    ramway::error error_;
};

namespace detail {
inline result<void> outcome(ramway_status code) {
    if (code == RAMWAY_OK) [[likely]] {
        return {};
    }
    return error(code);
}

inline result<int> descriptor(int fd) {
    if (fd >= 0) {
        return fd;
    }
    return error(ramway_last_status());
}

template <auto close>
struct closer {
    template <class H>
    void operator()(H *handle) const noexcept {
        (void)close(handle);
    }
};
template <class H, auto close>
using handle = std::unique_ptr<H, closer<close>>;
}  // namespace detail

/// The bytes of anything contiguous and trivially copyable: a span, vector, array, string_view.
class bytes {
  public:
    constexpr bytes() = default;
    constexpr bytes(std::span<const std::byte> data) : data_(data) {}
    template <std::ranges::contiguous_range R>
        requires std::ranges::sized_range<R> && std::is_trivially_copyable_v<std::ranges::range_value_t<R>>
    bytes(const R &range)
        : data_(std::as_bytes(std::span<const std::ranges::range_value_t<R>>(std::ranges::data(range),
                                                                            std::ranges::size(range)))) {}
    /// With its final zero or without it? Say std::string_view("...") or std::span(array).
    template <std::size_t N>
    bytes(const char (&)[N]) = delete;

    const void *data() const noexcept { return data_.data(); }
    std::size_t size() const noexcept { return data_.size(); }

  private:
    std::span<const std::byte> data_;
};

/// What can be asked for when a ring or region is made or opened: see ramway_options. Whatever is left out is its
/// default.
struct options {
    std::uint64_t capacity = 0;
    std::uint32_t align = 0;
    bool discard = false;
    bool persistent = false;
    bool allow_disk = false;
    bool lock_memory = false;
    bool huge_pages = false;
    bool prefault = false;
    bool membarrier = true;
    bool read_only = false;
    std::uint32_t mode = 0;
    wait_policy wait = wait_policy::automatic;
    /// How long opening waits for a name that is not there yet.
    std::chrono::nanoseconds timeout{0};
    /// -1: wherever the system puts it.
    int numa_node = -1;

    ramway_options c() const noexcept {
        ramway_options o = RAMWAY_OPTIONS_INIT;
        o.capacity = capacity;
        o.align = align;
        o.flags = (discard ? RAMWAY_DISCARD : 0u) | (persistent ? RAMWAY_PERSISTENT : 0u) |
                  (allow_disk ? RAMWAY_ALLOW_DISK : 0u) | (lock_memory ? RAMWAY_LOCK_MEMORY : 0u) |
                  (huge_pages ? RAMWAY_HUGE_PAGES : 0u) | (prefault ? RAMWAY_PREFAULT : 0u) |
                  (membarrier ? 0u : RAMWAY_NO_MEMBARRIER) | (read_only ? RAMWAY_READ_ONLY : 0u) |
                  (numa_node >= 0 ? RAMWAY_NUMA_NODE : 0u);
        o.mode = mode;
        o.wait_policy = static_cast<std::uint32_t>(wait);
        o.timeout_ns = detail::ns(timeout);
        o.numa_node = numa_node >= 0 ? static_cast<std::uint32_t>(numa_node) : 0;
        return o;
    }
};

/// What can be asked for when a listener is made or a bus connected: see ramway_bus_options.
struct bus_options {
    std::uint64_t capacity = 0;
    std::uint64_t capacity_back = 0;
    std::uint32_t align = 0;
    bool send_only = false;
    bool recv_only = false;
    bool membarrier = true;
    std::uint32_t mode = 0;
    wait_policy wait = wait_policy::automatic;
    std::span<const std::uint32_t> uids{};
    std::uint32_t backlog = 0;
    /// 0: the default, 10 s to connect and 1 s for a listener's handshakes.
    std::chrono::nanoseconds timeout{0};

    ramway_bus_options c() const noexcept {
        ramway_bus_options o = RAMWAY_BUS_OPTIONS_INIT;
        o.capacity = capacity;
        o.capacity_back = capacity_back;
        o.align = align;
        o.flags = (send_only ? RAMWAY_BUS_SEND_ONLY : 0u) | (recv_only ? RAMWAY_BUS_RECV_ONLY : 0u) |
                  (membarrier ? 0u : RAMWAY_NO_MEMBARRIER);
        o.mode = mode;
        o.wait_policy = static_cast<std::uint32_t>(wait);
        o.uids = uids.data();
        o.uid_count = static_cast<std::uint32_t>(uids.size());
        o.backlog = backlog;
        o.timeout_ns = detail::ns(timeout);
        return o;
    }
};

/// Room for one message, to be written in place. Aborts when it goes out of scope uncommitted: nothing of it remains.
/// Must not outlive its sender.
class slot {
  public:
    slot(slot &&other) noexcept : sender_(std::exchange(other.sender_, nullptr)), data_(other.data_) {}
    slot &operator=(slot &&) = delete;
    ~slot() {
        if (sender_ != nullptr) {
            (void)ramway_inline_abort(sender_);
        }
    }

    std::span<std::byte> data() const noexcept { return data_; }
    std::size_t size() const noexcept { return data_.size(); }
    /// Sends the first `len` bytes, visible at once.
    result<void> commit(std::size_t len, std::uint32_t type_id = 0, std::uint64_t tag = 0) && {
        return done(ramway_inline_commit(sender_, len, type_id, tag));
    }
    /// Visible only with the next flush or flushed message.
    result<void> commit_unflushed(std::size_t len, std::uint32_t type_id = 0, std::uint64_t tag = 0) && {
        return done(ramway_inline_commit_unflushed(sender_, len, type_id, tag));
    }

  private:
    friend class sender;
    slot(ramway_sender *sender, void *data, std::size_t len)
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

/// The sending end of a ring: one per ring, in the whole system. Closes when it goes out of scope. An empty one (moved
/// from, or a bus's direction that does not exist) answers invalid_argument.
class sender {
  public:
    sender() = default;

    static result<sender> create(const std::string &name, const options &o = {}) {
        return make(ramway_sender_create, name, o);
    }
    static result<sender> open(const std::string &name, const options &o = {}) {
        return make(ramway_sender_open, name, o);
    }
    static result<sender> open_or_create(const std::string &name, const options &o = {}) {
        return make(ramway_sender_open_or_create, name, o);
    }
    /// See ramway_sender_attach.
    static result<sender> attach(std::span<std::byte> memory) {
        sender made;
        ramway_sender *out = nullptr;
        auto code = ramway_sender_attach(memory.data(), memory.size(), &out);
        made.handle_.reset(out);
        return code == RAMWAY_OK ? result<sender>(std::move(made)) : result<sender>(error(code));
    }
    /// Takes a handle over from C.
    static sender adopt(ramway_sender *handle) noexcept {
        sender made;
        made.handle_.reset(handle);
        return made;
    }

    explicit operator bool() const noexcept { return handle_ != nullptr; }
    /// For calls of ramway.h; stays ours.
    ramway_sender *get() const noexcept { return handle_.get(); }

    /// Sends a message, visible at once; waits for room as long as it takes.
    result<void> send(std::uint32_t type_id, bytes data, std::uint64_t tag = 0) {
        return put(type_id, data, tag, RAMWAY_FOREVER);
    }
    /// Does not wait: status::full.
    result<void> try_send(std::uint32_t type_id, bytes data, std::uint64_t tag = 0) {
        return put(type_id, data, tag, detail::now);
    }
    result<void> send_for(std::chrono::nanoseconds timeout, std::uint32_t type_id, bytes data, std::uint64_t tag = 0) {
        return put(type_id, data, tag, detail::ns(timeout));
    }
    /// Sends a plain value by its bytes; message::as<T>() reads it.
    template <class T>
        requires std::is_trivially_copyable_v<T>
    result<void> send_value(std::uint32_t type_id, const T &value, std::uint64_t tag = 0) {
        return send(type_id, bytes(std::as_bytes(std::span<const T, 1>(std::addressof(value), 1))), tag);
    }
    /// Sends every element of a range of bytes-like things and makes them visible together; gives how many.
    template <std::ranges::input_range R>
        requires std::constructible_from<bytes, std::ranges::range_reference_t<R>>
    result<std::size_t> send_batch(std::uint32_t type_id, R &&messages) {
        std::size_t sent = 0;
        for (auto &&one : messages) {
            const bytes data(one);
            void *to = nullptr;
            auto code = ramway_inline_reserve(get(), data.size(), RAMWAY_FOREVER, &to);
            if (code == RAMWAY_OK) {
                if (data.size() != 0) {
                    std::memcpy(to, data.data(), data.size());
                }
                code = ramway_inline_commit_unflushed(get(), data.size(), type_id, 0);
                if (code != RAMWAY_OK) {
                    error why(code);
                    (void)ramway_inline_abort(get());
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
        auto code = ramway_inline_flush(get());
        return code == RAMWAY_OK ? result<std::size_t>(sent) : result<std::size_t>(error(code));
    }

    result<slot> reserve(std::size_t len) { return open_slot(len, RAMWAY_FOREVER); }
    /// Does not wait: status::full.
    result<slot> try_reserve(std::size_t len) { return open_slot(len, detail::now); }
    result<slot> reserve_for(std::chrono::nanoseconds timeout, std::size_t len) {
        return open_slot(len, detail::ns(timeout));
    }
    /// Makes what was committed unflushed visible.
    result<void> flush() { return detail::outcome(ramway_inline_flush(get())); }

    std::uint64_t capacity() const noexcept { return ramway_sender_capacity(get()); }
    std::uint32_t align() const noexcept { return ramway_sender_align(get()); }
    std::uint64_t max_message_len() const noexcept { return ramway_sender_max_message_len(get()); }
    std::uint64_t len() const noexcept { return ramway_sender_len(get()); }
    bool is_peer_alive() const noexcept { return ramway_sender_is_peer_alive(get()); }
    std::uint32_t peer_epoch() const noexcept { return ramway_sender_peer_epoch(get()); }
    std::uint32_t epoch() const noexcept { return ramway_sender_epoch(get()); }
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

  private:
    template <class Open>
    static result<sender> make(Open open, const std::string &name, const options &o) {
        ramway_sender *out = nullptr;
        const ramway_options c = o.c();
        auto code = open(name.c_str(), &c, &out);
        return code == RAMWAY_OK ? result<sender>(adopt(out)) : result<sender>(error(code));
    }
    result<void> put(std::uint32_t type_id, bytes data, std::uint64_t tag, std::int64_t timeout) {
        return detail::outcome(ramway_inline_send(get(), type_id, tag, data.data(), data.size(), timeout));
    }
    result<slot> open_slot(std::size_t len, std::int64_t timeout) {
        void *to = nullptr;
        auto code = ramway_inline_reserve(get(), len, timeout, &to);
        if (code == RAMWAY_OK) [[likely]] {
            return slot(get(), to, len);
        }
        return error(code);
    }

    detail::handle<ramway_sender, ramway_sender_close> handle_;
};

/// A received message while somebody else sees to its release.
struct message_view : ramway_message {
    std::span<const std::byte> bytes() const noexcept { return {static_cast<const std::byte *>(data), len}; }
    std::string_view text() const noexcept { return {static_cast<const char *>(data), len}; }
    /// The payload as a plain value, copied out; invalid_argument if the length is not that of T.
    template <class T>
        requires std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T>
    result<T> as() const {
        if (len != sizeof(T)) {
            return error(status::invalid_argument, "a message of " + std::to_string(len) + " bytes read as a value of " +
                                                       std::to_string(sizeof(T)));
        }
        T value;
        std::memcpy(std::addressof(value), data, sizeof(T));
        return value;
    }
};
static_assert(sizeof(message_view) == sizeof(ramway_message));

/// A received message: a view of the shared memory, given back when it goes out of scope. Must not outlive its
/// receiver.
class message {
  public:
    message(message &&other) noexcept : receiver_(std::exchange(other.receiver_, nullptr)), view_(other.view_) {}
    message &operator=(message &&other) noexcept {
        if (this != &other) {
            release();
            receiver_ = std::exchange(other.receiver_, nullptr);
            view_ = other.view_;
        }
        return *this;
    }
    ~message() { release(); }

    std::span<const std::byte> data() const noexcept { return view_.bytes(); }
    std::string_view text() const noexcept { return view_.text(); }
    std::size_t size() const noexcept { return view_.len; }
    std::uint32_t type_id() const noexcept { return view_.type_id; }
    std::uint64_t tag() const noexcept { return view_.tag; }
    template <class T>
    result<T> as() const {
        return view_.template as<T>();
    }
    /// Gives it back now; the view is over.
    void release() noexcept {
        if (receiver_ != nullptr) {
            (void)ramway_inline_release(std::exchange(receiver_, nullptr));
        }
    }

  private:
    friend class receiver;
    message(ramway_receiver *receiver, const message_view &view) : receiver_(receiver), view_(view) {}

    ramway_receiver *receiver_;
    message_view view_;
};

/// Several messages, given back together when it goes out of scope. Iterates over message_view.
class batch {
  public:
    batch(batch &&other) noexcept : receiver_(std::exchange(other.receiver_, nullptr)), views_(other.views_) {}
    batch &operator=(batch &&) = delete;
    ~batch() {
        if (receiver_ != nullptr) {
            (void)ramway_inline_release(receiver_);
        }
    }

    std::size_t size() const noexcept { return views_.size(); }
    const message_view &operator[](std::size_t i) const noexcept { return views_[i]; }
    auto begin() const noexcept { return views_.begin(); }
    auto end() const noexcept { return views_.end(); }

  private:
    friend class receiver;
    batch(ramway_receiver *receiver, std::span<const message_view> views) : receiver_(receiver), views_(views) {}

    ramway_receiver *receiver_;
    std::span<const message_view> views_;
};

/// Copies of what a copying receive said about its message.
struct meta {
    std::size_t len;
    std::uint32_t type_id;
    std::uint64_t tag;
};

/// The receiving end of a ring: one per ring, in the whole system. Closes when it goes out of scope.
class receiver {
  public:
    receiver() = default;

    static result<receiver> create(const std::string &name, const options &o = {}) {
        return make(ramway_receiver_create, name, o);
    }
    static result<receiver> open(const std::string &name, const options &o = {}) {
        return make(ramway_receiver_open, name, o);
    }
    static result<receiver> open_or_create(const std::string &name, const options &o = {}) {
        return make(ramway_receiver_open_or_create, name, o);
    }
    /// See ramway_receiver_attach.
    static result<receiver> attach(std::span<std::byte> memory) {
        ramway_receiver *out = nullptr;
        auto code = ramway_receiver_attach(memory.data(), memory.size(), &out);
        return code == RAMWAY_OK ? result<receiver>(adopt(out)) : result<receiver>(error(code));
    }
    /// Takes a handle over from C.
    static receiver adopt(ramway_receiver *handle) noexcept {
        receiver made;
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
    result<batch> recv_batch(std::span<message_view> room, std::chrono::nanoseconds timeout = forever) {
        std::size_t count = 0;
        auto code = ramway_inline_recv_batch(get(), detail::ns(timeout), room.data(), room.size(), &count);
        if (code == RAMWAY_OK) [[likely]] {
            return batch(get(), room.first(count));
        }
        return error(code);
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

    /// Messages one after another, each given back before the next is taken, until the stream ends:
    ///
    ///     auto messages = rx.messages();
    ///     for (const auto &message : messages) { ... }
    ///     if (messages.ended() != ramway::status::closed) { ... }
    class message_range {
      public:
        class iterator {
          public:
            using value_type = message_view;
            using difference_type = std::ptrdiff_t;
            using iterator_concept = std::input_iterator_tag;
            const message_view &operator*() const noexcept { return range_->view_; }
            const message_view *operator->() const noexcept { return &range_->view_; }
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
        friend class receiver;
        message_range(ramway_receiver *receiver, std::int64_t timeout) : receiver_(receiver), timeout_(timeout) {}
        void release() noexcept {
            if (std::exchange(taken_, false)) {
                (void)ramway_inline_release(receiver_);
            }
        }
        void next() {
            release();
            code_ = ramway_inline_recv(receiver_, timeout_, &view_);
            taken_ = code_ == RAMWAY_OK;
        }

        ramway_receiver *receiver_;
        std::int64_t timeout_;
        message_view view_{};
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

  private:
    template <class Open>
    static result<receiver> make(Open open, const std::string &name, const options &o) {
        ramway_receiver *out = nullptr;
        const ramway_options c = o.c();
        auto code = open(name.c_str(), &c, &out);
        return code == RAMWAY_OK ? result<receiver>(adopt(out)) : result<receiver>(error(code));
    }
    result<message> take(std::int64_t timeout) {
        message_view view;
        auto code = ramway_inline_recv(get(), timeout, &view);
        if (code == RAMWAY_OK) [[likely]] {
            return message(get(), view);
        }
        return error(code);
    }

    detail::handle<ramway_receiver, ramway_receiver_close> handle_;
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
    std::string_view path() const noexcept {
        const char *path = ramway_listener_path(handle_.get());
        return path != nullptr ? path : "";
    }

  private:
    listener() = default;
    detail::handle<ramway_listener, ramway_listener_close> handle_;
};

/// Named bytes that any number of processes have mapped, with notify and wait. May be shared by threads.
class region {
  public:
    static result<region> create(const std::string &name, std::uint64_t len, const options &o = {}) {
        ramway_region *out = nullptr;
        const ramway_options c = o.c();
        const auto code = ramway_region_create(name.c_str(), len, &c, &out);
        return give(code, out);
    }
    static result<region> open(const std::string &name, const options &o = {}) {
        ramway_region *out = nullptr;
        const ramway_options c = o.c();
        const auto code = ramway_region_open(name.c_str(), &c, &out);
        return give(code, out);
    }
    static result<region> open_or_create(const std::string &name, std::uint64_t len, const options &o = {}) {
        ramway_region *out = nullptr;
        const ramway_options c = o.c();
        const auto code = ramway_region_open_or_create(name.c_str(), len, &c, &out);
        return give(code, out);
    }

    /// The bytes; not to be written through a read-only handle. Their order among processes is the user's to make.
    std::span<std::byte> data() const noexcept {
        return {static_cast<std::byte *>(ramway_region_data(get())), static_cast<std::size_t>(len())};
    }
    std::uint64_t len() const noexcept { return ramway_region_len(get()); }
    bool is_read_only() const noexcept { return ramway_region_is_read_only(get()); }
    result<void> read_at(std::uint64_t offset, std::span<std::byte> to) const {
        return detail::outcome(ramway_region_read_at(get(), offset, to.data(), to.size()));
    }
    result<void> write_at(std::uint64_t offset, bytes from) const {
        return detail::outcome(ramway_region_write_at(get(), offset, from.data(), from.size()));
    }
    /// The value at `offset` as an atomic that all processes share; invalid_argument if it is not aligned or outside,
    /// permission_denied on a read-only handle.
    template <class T>
        requires std::is_trivially_copyable_v<T> && std::atomic_ref<T>::is_always_lock_free
    result<std::atomic_ref<T>> atomic(std::uint64_t offset) const {
        if (offset % std::atomic_ref<T>::required_alignment != 0 || len() < sizeof(T) || offset > len() - sizeof(T)) {
            return error(status::invalid_argument, "no aligned atomic at offset " + std::to_string(offset));
        }
        if (is_read_only()) {
            return error(status::permission_denied, "an atomic of a region that was opened read-only");
        }
        return std::atomic_ref<T>(*reinterpret_cast<T *>(data().data() + offset));
    }
    result<void> notify() const { return detail::outcome(ramway_region_notify(get())); }
    /// Waits for a notification since the last wait that succeeded; status::timed_out, status::empty for a time of 0.
    result<void> wait(std::chrono::nanoseconds timeout = forever) const {
        return detail::outcome(ramway_region_wait(get(), detail::ns(timeout)));
    }
    result<void> try_wait() const { return detail::outcome(ramway_region_wait(get(), detail::now)); }
    /// For event loops: readable when try_wait would succeed. Ours to close.
    result<int> readiness_fd() const { return detail::descriptor(ramway_region_readiness_fd(get())); }
    /// For calls of ramway.h; stays ours.
    ramway_region *get() const noexcept { return handle_.get(); }

  private:
    region() = default;
    static result<region> give(ramway_status code, ramway_region *handle) {
        if (code != RAMWAY_OK) {
            return error(code);
        }
        region made;
        made.handle_.reset(handle);
        return made;
    }

    detail::handle<ramway_region, ramway_region_close> handle_;
};

}  // namespace ramway

#endif
