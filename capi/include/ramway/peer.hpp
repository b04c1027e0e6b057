/// Who is connected to an inbox or an outbox. Part of ramway.hpp.
#ifndef RAMWAY_PEER_HPP
#define RAMWAY_PEER_HPP

#include "../ramway.h"

#include <cstdint>

namespace ramway {

/// A process that is connected to an inbox or to an outbox.
struct peer {
    /// Counts up from 1 with each that connects.
    std::uint64_t id = 0;
    /// Its effective user.
    std::uint32_t uid = 0;
    /// Its process when it connected, 0 if it has no number here.
    std::uint32_t pid = 0;

    static peer of(const ramway_peer &c) noexcept { return {c.id, c.uid, c.pid}; }
    friend bool operator==(const peer &, const peer &) = default;
};

}  // namespace ramway

#endif
