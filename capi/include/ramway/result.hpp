/// Status numbers, errors and results. Part of ramway.hpp.
#ifndef RAMWAY_RESULT_HPP
#define RAMWAY_RESULT_HPP

#include "../ramway.h"

#include <chrono>
#include <concepts>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <utility>

namespace ramway {

/// The numbers that all of Ramway's languages share: see ramway_status.
enum class status : int {
    // facts: status (generated from format/facts.toml by `make facts`)
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
    lagged = RAMWAY_LAGGED,
    // end of facts
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

/// A negative time that was computed (a deadline that has passed) does not mean forever: only `forever` does, and the
/// library refuses any other.
constexpr std::int64_t ns(std::chrono::nanoseconds timeout) noexcept {
    if (timeout == forever) {
        return RAMWAY_FOREVER;
    }
    return timeout.count() < 0 ? std::int64_t{-2} : timeout.count();
}
}  // namespace detail

/// What went wrong: a code to decide on, and a message that says what was tried, on which name, and what to do.
class error {
  public:
    error() = default;
    /// The error behind a status that a call of this thread has just returned.
    explicit error(ramway_status code) : code_(static_cast<status>(code)) {
        // Full, empty, timed out and lagged have no text of their own: a loop that meets them does not allocate.
        if (code == RAMWAY_LAGGED) {
            lost_ = ramway_last_lost();
        } else if (code != RAMWAY_FULL && code != RAMWAY_EMPTY && code != RAMWAY_TIMED_OUT) {
            errno_ = ramway_last_errno();
            message_ = ramway_last_error();
        }
    }
    error(status code, std::string message) : code_(code), message_(std::move(message)) {}

    status code() const noexcept { return code_; }
    /// The operating system's errno, 0 if it had no part in it.
    int os_error() const noexcept { return errno_; }
    /// With status::lagged: how many messages were lost; else 0.
    std::uint64_t lost() const noexcept { return lost_; }
    const char *what() const noexcept {
        return message_.empty() ? ramway_strerror(static_cast<int>(code_)) : message_.c_str();
    }

  private:
    status code_ = status::ok;
    int errno_ = 0;
    std::uint64_t lost_ = 0;
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
template <class T, class E = ramway::error>
class [[nodiscard]] result {
  public:
    result(T value) : has_(true) { std::construct_at(&value_, std::move(value)); }
    result(E cause) : has_(false) { std::construct_at(&error_, std::move(cause)); }
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
    const E &error() const noexcept { return error_; }
    /// status::ok if there is a value.
    status code() const noexcept
        requires std::same_as<E, ramway::error>
    {
        return has_ ? status::ok : error_.code();
    }
    /// The value; without one, throws ramway::exception, of a call rpc::call_exception (aborts in a program without
    /// exceptions).
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
            // Another kind of error has its own, beside it.
            using detail::raise;
            raise(std::move(error_));
        }
    }

    union {
        T value_;
        E error_;
    };
    bool has_;
};

/// Success, or the error for which there is none.
template <>
class [[nodiscard]] result<void, error> {
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

}  // namespace ramway

#endif
