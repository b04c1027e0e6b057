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
#include <string>
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

/// How a subscriber of a topic reads: see RAMWAY_RELIABLE and its siblings.
enum class policy : std::uint32_t {
    reliable = RAMWAY_RELIABLE,
    lossy = RAMWAY_LOSSY,
    latest = RAMWAY_LATEST,
};

/// Where a subscriber of a topic begins: see RAMWAY_FROM_OLDEST and its siblings.
struct start {
    std::uint32_t place = RAMWAY_FROM_DEFAULT;
    std::uint64_t number = 0;
};
/// At the oldest message that is intact.
inline constexpr start from_oldest{RAMWAY_FROM_OLDEST, 0};
/// After the newest message.
inline constexpr start from_now{RAMWAY_FROM_NOW, 0};
/// With up to `messages` that were published before, as many as are intact.
constexpr start history(std::uint64_t messages) noexcept { return {RAMWAY_HISTORY, messages}; }
/// After the message with this number, or at the oldest intact one.
constexpr start after_seq(std::uint64_t seq) noexcept { return {RAMWAY_AFTER_SEQ, seq}; }

/// What can be asked for when a topic is made or opened: see ramway_topic_options. Whatever is left out is its default.
///
///     ramway::subscriber::open("pose", {.policy = ramway::policy::lossy, .start = ramway::history(10)})
struct topic_options {
    std::uint64_t capacity = 0;
    std::uint32_t align = 0;
    std::uint32_t slots = 0;
    bool discard = false;
    bool persistent = false;
    bool allow_disk = false;
    bool lock_memory = false;
    bool huge_pages = false;
    bool prefault = false;
    bool membarrier = true;
    bool lossy_only = false;
    bool may_eject = false;
    bool timestamps = false;
    bool durable = false;
    bool read_only = false;
    std::uint32_t mode = 0;
    wait_policy wait = wait_policy::automatic;
    ramway::policy policy = ramway::policy::reliable;
    ramway::start start{};
    std::string label{};
    /// 0: the publisher waits for a subscriber as long as its process lives.
    std::chrono::nanoseconds eject_after{0};
    /// How long opening waits for a name that is not there yet.
    std::chrono::nanoseconds timeout{0};
    /// -1: wherever the system puts it.
    int numa_node = -1;

    /// Valid as long as these options.
    ramway_topic_options c() const noexcept {
        ramway_topic_options o = RAMWAY_TOPIC_OPTIONS_INIT;
        o.capacity = capacity;
        o.align = align;
        o.slots = slots;
        o.flags = (discard ? RAMWAY_DISCARD : 0u) | (persistent ? RAMWAY_PERSISTENT : 0u) |
                  (allow_disk ? RAMWAY_ALLOW_DISK : 0u) | (lock_memory ? RAMWAY_LOCK_MEMORY : 0u) |
                  (huge_pages ? RAMWAY_HUGE_PAGES : 0u) | (prefault ? RAMWAY_PREFAULT : 0u) |
                  (membarrier ? 0u : RAMWAY_NO_MEMBARRIER) | (lossy_only ? RAMWAY_LOSSY_ONLY : 0u) |
                  (may_eject ? RAMWAY_MAY_EJECT : 0u) | (timestamps ? RAMWAY_TIMESTAMPS : 0u) |
                  (durable ? RAMWAY_DURABLE : 0u) | (read_only ? RAMWAY_READ_ONLY : 0u) |
                  (numa_node >= 0 ? RAMWAY_NUMA_NODE : 0u);
        o.mode = mode;
        o.wait_policy = static_cast<std::uint32_t>(wait);
        o.policy = static_cast<std::uint32_t>(policy);
        o.timeout_ns = detail::ns(timeout);
        // Not detail::ns: forever is no time to eject after, and the library refuses it as any other negative one.
        o.eject_after_ns = eject_after.count();
        o.label = label.empty() ? nullptr : label.c_str();
        o.start_number = start.number;
        o.start = start.place;
        o.numa_node = numa_node >= 0 ? static_cast<std::uint32_t>(numa_node) : 0;
        return o;
    }
};

namespace detail {

// What several options have in common, for C. The structs themselves repeat it: with a base, `{.capacity = n}` could not name it.

/// Of whoever connects or listens.
template <class C, class O>
void fill_peers(C &c, const O &o) noexcept {
    c.wait_policy = static_cast<std::uint32_t>(o.wait);
    c.allow_uids = o.allow_uids.data();
    c.allow_uid_count = static_cast<std::uint32_t>(o.allow_uids.size());
    c.timeout_ns = ns(o.timeout);
}

/// Of whoever listens.
template <class C, class O>
void fill_listening(C &c, const O &o) noexcept {
    fill_peers(c, o);
    c.capacity = o.capacity;
    c.align = o.align;
    c.mode = o.mode;
}

}  // namespace detail

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
        detail::fill_listening(o, *this);
        o.capacity_back = capacity_back;
        o.flags = (send_only ? RAMWAY_BUS_SEND_ONLY : 0u) | (recv_only ? RAMWAY_BUS_RECV_ONLY : 0u) |
                  (membarrier ? 0u : RAMWAY_NO_MEMBARRIER);
        o.backlog = backlog;
        return o;
    }
};

}  // namespace ramway

#endif
