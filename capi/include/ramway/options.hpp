/// Bytes to send, and what can be asked for. Part of ramway.hpp.
#ifndef RAMWAY_OPTIONS_HPP
#define RAMWAY_OPTIONS_HPP

#include "../ramway.h"
#include "result.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <type_traits>

namespace ramway {

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
    std::span<const std::uint32_t> allow_uids{};
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
        o.allow_uids = allow_uids.data();
        o.allow_uid_count = static_cast<std::uint32_t>(allow_uids.size());
        o.backlog = backlog;
        o.timeout_ns = detail::ns(timeout);
        return o;
    }
};

}  // namespace ramway

#endif
