/// Topics: one publisher, many subscribers with a policy each. Part of ramway.hpp.
#ifndef RAMWAY_TOPIC_HPP
#define RAMWAY_TOPIC_HPP

#include "../ramway_inline.h"
#include "options.hpp"
#include "receiver.hpp"
#include "result.hpp"
#include "sender.hpp"

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace ramway {

/// A received message of a topic while somebody else sees to its release: text(), bytes(), as<T>(), tensor(), the fields
/// `seq`, `time` and `lost`, and what a ring's message has in the field `message`.
struct topic_view : ramway_topic_message, detail::viewing<topic_view> {
    const ramway_message &plain() const noexcept { return message; }
    std::uint32_t type_id() const noexcept { return message.type_id; }
    std::uint64_t tag() const noexcept { return message.tag; }
};
static_assert(sizeof(topic_view) == sizeof(ramway_topic_message));

namespace detail {
/// The calls of a publisher that are inline.
struct topic_sending {
    static constexpr auto send = ramway_inline_publisher_send;
    static constexpr auto reserve = ramway_inline_publisher_reserve;
    static constexpr auto commit = ramway_inline_publisher_commit;
    static constexpr auto commit_unflushed = ramway_inline_publisher_commit_unflushed;
    static constexpr auto flush = ramway_inline_publisher_flush;
    static constexpr auto abort = ramway_inline_publisher_abort;
};

/// The calls of a subscriber that are inline, and what they give.
struct topic_receiving {
    using view = topic_view;
    static constexpr auto recv = ramway_inline_subscriber_recv;
    static constexpr auto recv_batch = ramway_inline_subscriber_recv_batch;
    static constexpr auto release = ramway_inline_subscriber_release;
};
}  // namespace detail

/// Room in a topic.
using topic_slot = basic_slot<detail::topic_sending>;
/// A message of a topic, with seq(), time() and lost().
using topic_message = basic_message<detail::topic_receiving>;
/// Messages of a topic.
using topic_batch = basic_batch<detail::topic_receiving>;

/// What a copying receive said about its message.
struct topic_meta {
    std::size_t len;
    std::uint32_t type_id;
    std::uint64_t tag;
    std::uint64_t seq;
    std::uint64_t time;
    std::uint64_t lost;
};

/// How far a subscriber is behind: bytes that are published and not released, headers and padding included, and messages
/// that are published and not received.
struct lag {
    std::uint64_t bytes;
    std::uint64_t messages;
};

/// A subscriber, as the publisher sees it at one moment: see ramway_subscriber_info.
struct subscriber_info {
    std::uint32_t slot;
    ramway::policy policy;
    std::string label;
    bool durable;
    bool alive;
    bool ejected;
    std::uint32_t epoch;
    /// Empty under a policy that does not say.
    std::optional<ramway::lag> lag;
    std::uint64_t lost;
    /// For how long it has kept the publisher from going on without reading anything; empty if it does not.
    std::optional<std::chrono::nanoseconds> blocks_for;
};

/// The publisher of a topic: one per topic, in the whole system. What a sender can do it can do too: its send waits for the
/// slowest reliable subscriber when the topic is full, and for nobody where there is none. Never status::closed or
/// peer_dead because of a subscriber.
class publisher : public detail::sending<publisher, detail::topic_sending> {
  public:
    static result<publisher> create(const std::string &name, const topic_options &o = {}) {
        return make(ramway_publisher_create, name, o);
    }
    static result<publisher> open(const std::string &name, const topic_options &o = {}) {
        return make(ramway_publisher_open, name, o);
    }
    static result<publisher> open_or_create(const std::string &name, const topic_options &o = {}) {
        return make(ramway_publisher_open_or_create, name, o);
    }

    /// Waits until so many reliable subscribers are attached and live: see ramway_publisher_wait_for_subscribers.
    result<void> wait_for_subscribers(std::size_t count, std::chrono::nanoseconds timeout = forever) {
        return detail::outcome(ramway_publisher_wait_for_subscribers(get(), count, detail::ns(timeout)));
    }
    /// Those who have a slot: a system call for each.
    result<std::vector<subscriber_info>> subscribers() {
        std::vector<subscriber_info> all;
        auto code = ramway_publisher_subscribers(get(), &publisher::note, &all);
        return code == RAMWAY_OK ? result<std::vector<subscriber_info>>(std::move(all))
                                 : result<std::vector<subscriber_info>>(error(code));
    }
    /// The number of the last visible message; 0 before the first.
    std::uint64_t seq() const noexcept { return ramway_publisher_seq(get()); }
    /// Every subscriber counts so many messages as lost before the next one: see ramway_publisher_skip_seq.
    result<void> skip_seq(std::uint64_t lost) { return detail::outcome(ramway_publisher_skip_seq(get(), lost)); }

  private:
    /// No exception crosses the library: without memory the process ends, as anywhere where noexcept is broken.
    static void note(const ramway_subscriber_info *info, void *all) noexcept {
        auto of = [](std::int64_t number) { return static_cast<std::uint64_t>(number); };
        subscriber_info one{info->slot,  static_cast<ramway::policy>(info->policy),
                            info->label, info->durable,
                            info->alive, info->ejected,
                            info->epoch, std::nullopt,
                            info->lost,  std::nullopt};
        if (info->lag_bytes >= 0) {
            one.lag = ramway::lag{of(info->lag_bytes), of(info->lag_messages)};
        }
        if (info->blocks_for_ns >= 0) {
            one.blocks_for = std::chrono::nanoseconds(info->blocks_for_ns);
        }
        static_cast<std::vector<subscriber_info> *>(all)->push_back(std::move(one));
    }
};

/// A subscriber of a topic: one of many. What a receiver can do it can do too; its messages have a number, a time, and how
/// many were lost before them. status::lagged, once, if the publisher has ejected it: error::lost says how many were lost,
/// and the next call goes on with the oldest message.
class subscriber : public detail::receiving<subscriber, detail::topic_receiving> {
  public:
    static result<subscriber> create(const std::string &name, const topic_options &o = {}) {
        return make(ramway_subscriber_create, name, o);
    }
    static result<subscriber> open(const std::string &name, const topic_options &o = {}) {
        return make(ramway_subscriber_open, name, o);
    }
    static result<subscriber> open_or_create(const std::string &name, const topic_options &o = {}) {
        return make(ramway_subscriber_open_or_create, name, o);
    }

    /// Copies the next message out; too_large leaves the message where it is. Where the publisher does not wait for this
    /// subscriber, it is the shortest way.
    result<topic_meta> recv_into(std::span<std::byte> buffer, std::chrono::nanoseconds timeout = forever) {
        ramway_topic_message m{};
        return meta_of(ramway_subscriber_recv_into(get(), detail::ns(timeout), buffer.data(), buffer.size(), &m), m);
    }
    /// Copies the newest message out, whatever was received before; the same one again if there is no newer one. Never
    /// waits: status::empty before the first. See ramway_subscriber_latest.
    result<topic_meta> latest(std::span<std::byte> buffer) {
        ramway_topic_message m{};
        return meta_of(ramway_inline_subscriber_latest(get(), buffer.data(), buffer.size(), &m), m);
    }
    /// The same as a plain value; invalid_argument if the length is not that of T.
    template <class T>
        requires std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T>
    result<T> latest() {
        ramway_topic_message m{};
        T value;
        return value_of(ramway_inline_subscriber_latest(get(), std::addressof(value), sizeof(T), &m), m, value);
    }
    /// Waits for a message that is newer than the one that latest or this gave last, and copies it out. For
    /// policy::latest only: status::unsupported.
    result<topic_meta> wait_newer(std::span<std::byte> buffer, std::chrono::nanoseconds timeout = forever) {
        ramway_topic_message m{};
        return meta_of(ramway_subscriber_wait_newer(get(), detail::ns(timeout), buffer.data(), buffer.size(), &m), m);
    }
    /// The same as a plain value.
    template <class T>
        requires std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T>
    result<T> wait_newer(std::chrono::nanoseconds timeout = forever) {
        ramway_topic_message m{};
        T value;
        return value_of(
            ramway_subscriber_wait_newer(get(), detail::ns(timeout), std::addressof(value), sizeof(T), &m), m, value);
    }
    /// Goes on at the newest message; gives how many that leaves out, which do not count as lost.
    result<std::uint64_t> skip_to_newest() {
        std::uint64_t skipped = 0;
        auto code = ramway_subscriber_skip_to_newest(get(), &skipped);
        return code == RAMWAY_OK ? result<std::uint64_t>(skipped) : result<std::uint64_t>(error(code));
    }
    ramway::policy policy() const noexcept { return static_cast<ramway::policy>(ramway_subscriber_policy(get())); }
    /// The label that it was opened with; empty without one.
    std::string_view label() const noexcept {
        const char *label = ramway_subscriber_label(get());
        return label != nullptr ? label : "";
    }
    /// Messages that this handle has lost so far.
    std::uint64_t lost() const noexcept { return ramway_subscriber_lost(get()); }
    /// Can be stale when it returns.
    ramway::lag lag() const noexcept {
        ramway::lag found{0, 0};
        (void)ramway_subscriber_lag(get(), &found.bytes, &found.messages);
        return found;
    }
    /// Closes a durable subscriber for good: its label and cursor are forgotten. For any other it is close.
    result<void> unsubscribe() { return detail::outcome(ramway_subscriber_unsubscribe(release_handle())); }

  private:
    static result<topic_meta> meta_of(ramway_status code, const ramway_topic_message &m) {
        if (code == RAMWAY_OK) [[likely]] {
            return topic_meta{m.message.len, m.message.type_id, m.message.tag, m.seq, m.time, m.lost};
        }
        return error(code);
    }
    template <class T>
    static result<T> value_of(ramway_status code, const ramway_topic_message &m, const T &value) {
        if (code == RAMWAY_OK && m.message.len == sizeof(T)) [[likely]] {
            return value;
        }
        if (code == RAMWAY_OK || code == RAMWAY_TOO_LARGE) {
            return error(status::invalid_argument, "a message of " + std::to_string(m.message.len) +
                                                       " bytes read as a value of " + std::to_string(sizeof(T)));
        }
        return error(code);
    }
};

}  // namespace ramway

#endif
