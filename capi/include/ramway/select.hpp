/// Waiting for many sources at once. Part of ramway.hpp.
#ifndef RAMWAY_SELECT_HPP
#define RAMWAY_SELECT_HPP

#include "../ramway.h"
#include "bus.hpp"
#include "receiver.hpp"
#include "region.hpp"
#include "result.hpp"
#include "sender.hpp"
#include "topic.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

namespace ramway {

/// What a select waits for: a receiver, a subscriber, a region or a listener becomes one by itself; room() and readable() make
/// the others. Refers to its handle, which must be open while a wait runs, and may be moved or closed between two.
struct source : ramway_source {
    /// Ready when try_recv has something else to say than status::empty: a message, a close or a death.
    source(receiver &from) noexcept : source(ramway_source_receiver(from.get())) {}
    source(subscriber &from) noexcept : source(ramway_source_receiver(from.get())) {}
    /// Ready when try_wait has something else to say than status::empty.
    source(const region &from) noexcept : source(ramway_source_region(from.get())) {}
    /// Ready when try_accept is worth a call.
    source(const listener &from) noexcept : source(ramway_source_listener(from.get())) {}
    /// One that ends with this line cannot be waited for.
    source(const region &&) = delete;
    source(const listener &&) = delete;
    explicit source(const ramway_source &from) noexcept : ramway_source(from) {}
};
static_assert(sizeof(source) == sizeof(ramway_source));

/// Room for a message of `len` bytes: ready when try_reserve has something else to say than status::full.
inline source room(sender &in, std::size_t len) noexcept { return source(ramway_source_room(in.get(), len)); }
inline source room(publisher &in, std::size_t len) noexcept { return source(ramway_source_room(in.get(), len)); }
/// A descriptor of any kind: ready when it is readable, or has an error or a hang-up.
inline source readable(int fd) noexcept { return source(ramway_source_fd(fd)); }

/// Waits for any of many sources at once. Nothing of them is kept between two waits.
///
///     ramway::select select;
///     for (const std::size_t index : select.wait({pictures, commands}).value()) { ... }
///
/// While one thread waits, another one's call gets status::busy, except wake.
class select {
  public:
    select() {
        ramway_select *out = nullptr;
        (void)ramway_select_new(&out);
        handle_.reset(out);
    }

    /// The indices of those that are ready, as soon as there are any: valid until the next wait. The one that was first in the
    /// last answer is last. status::timed_out (status::empty for a time of 0) if there is none, status::interrupted by wake.
    /// See ramway_select_wait.
    result<std::span<const std::size_t>> wait(std::span<const source> sources,
                                              std::chrono::nanoseconds timeout = forever) {
        ready_.resize(std::max(ready_.size(), sources.size()));
        std::size_t count = 0;
        const auto code = ramway_select_wait(handle_.get(), sources.data(), sources.size(), detail::ns(timeout),
                                             ready_.data(), &count);
        if (code == RAMWAY_OK) [[likely]] {
            return std::span<const std::size_t>(ready_.data(), count);
        }
        return error(code);
    }
    result<std::span<const std::size_t>> wait(std::initializer_list<source> sources,
                                              std::chrono::nanoseconds timeout = forever) {
        return wait(std::span<const source>(sources.begin(), sources.size()), timeout);
    }
    /// Any thread, while the handle is open: ends the wait that is running, or the next one, with status::interrupted, unless a
    /// source is ready.
    void wake() const noexcept { (void)ramway_select_wake(handle_.get()); }
    result<void> set_wait_policy(wait_policy policy) {
        return detail::outcome(ramway_select_set_wait_policy(handle_.get(), static_cast<std::uint32_t>(policy)));
    }

  private:
    detail::handle<ramway_select, ramway_select_free> handle_;
    std::vector<std::size_t> ready_;
};

}  // namespace ramway

#endif
