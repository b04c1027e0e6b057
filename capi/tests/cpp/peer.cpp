// peer.c in C++: see there.
#include "ramway.hpp"

#include <array>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <string>
#include <thread>
#include <tuple>

#include <unistd.h>

namespace {

using namespace std::chrono_literals;

void check(bool condition, const char *what) {
    if (!condition) {
        std::cerr << "check failed: " << what << '\n';
        std::exit(1);
    }
}

std::uint64_t fnv(std::span<const std::byte> bytes) {
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (auto byte : bytes) {
        hash = (hash ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3u;
    }
    return hash;
}

std::size_t length_of(std::uint64_t i) { return 24 + static_cast<std::size_t>(i * 7919 % 200); }

void fill(std::span<std::byte> to, std::uint64_t i) {
    const auto len = length_of(i) - 8;
    std::memcpy(to.data(), &i, 8);
    for (auto k = std::size_t{8}; k < len; ++k) {
        to[k] = static_cast<std::byte>(i + k);
    }
    const auto hash = fnv(to.first(len));
    std::memcpy(to.data() + len, &hash, 8);
}

std::uint64_t verify(const ramway_message &m) {
    check(m.len >= 24, "length");
    std::uint64_t i, hash;
    std::memcpy(&i, m.data, 8);
    check(m.len == length_of(i) && m.type_id == i % 1000 && m.tag == i + 1, "header");
    const std::span bytes(static_cast<const std::byte *>(m.data), m.len);
    for (auto k = std::size_t{8}; k < m.len - 8; ++k) {
        check(bytes[k] == static_cast<std::byte>(i + k), "payload");
    }
    std::memcpy(&hash, bytes.data() + m.len - 8, 8);
    check(hash == fnv(bytes.first(m.len - 8)), "checksum");
    return i;
}

// Of a ring, a bus or a topic.
template <class Sender>
ramway::result<void> send_one(Sender &tx, std::uint64_t i) {
    const auto len = length_of(i);
    const auto type_id = static_cast<std::uint32_t>(i % 1000);
    if (i % 3 == 0) {
        std::array<std::byte, 256> copy;
        fill(copy, i);
        return tx.send(type_id, i + 1, std::span<const std::byte>(copy).first(len));
    }
    auto slot = tx.reserve(250);
    if (!slot) {
        return slot.error();
    }
    fill(slot->data(), i);
    return i % 3 == 1 ? std::move(*slot).commit(type_id, i + 1, len)
                      : std::move(*slot).commit_unflushed(type_id, i + 1, len);
}

template <class Sender>
ramway::result<void> send_all(Sender &tx, std::uint64_t count) {
    const auto last = tx.last_tag();
    const auto first = last ? *last : 0;
    auto i = first;
    ramway::result<void> outcome;
    for (; i < count && outcome; ++i) {
        outcome = send_one(tx, i);
        while (outcome.code() == ramway::status::peer_dead && first != 0 && i == first) {
            std::this_thread::sleep_for(10ms);  // Started anew before the receiver was: it comes.
            outcome = send_one(tx, i);
        }
    }
    if (outcome) {
        outcome = tx.flush();
    }
    std::cout << first << ' ' << i << '\n';
    return outcome;
}

template <class Receiver>
ramway::status recv_all(Receiver &rx) {
    std::uint64_t first = 0, next = 0;
    const auto take = [&](const typename Receiver::view &m) {
        const auto i = verify(m.plain());
        if constexpr (requires { m.seq; }) {
            check(m.seq == i + 1 && m.lost == 0, "number");
        }
        if (next == 0) {
            first = i;
        }
        check(next == 0 || i == next, "order");
        next = i + 1;
        if (next - first == 1000) {
            std::cerr << "running" << std::endl;
        }
    };
    // A thousand by batches, the rest one by one.
    std::array<typename Receiver::view, 16> room;
    auto ended = ramway::status::ok;
    while (ended == ramway::status::ok && next - first < 1000) {
        auto batch = rx.recv_batch(room);
        ended = batch.code();
        if (batch) {
            for (const auto &m : *batch) {
                take(m);
            }
        }
    }
    if (ended == ramway::status::ok) {
        auto messages = rx.messages();
        for (const auto &m : messages) {
            take(m);
        }
        ended = messages.ended();
    }
    std::cout << first << ' ' << next << '\n';
    return ended == ramway::status::closed ? ramway::status::ok : ended;
}

template <class Sender>
int sends_all(Sender &tx, std::uint64_t count) {
    std::cerr << "attached" << std::endl;
    auto outcome = send_all(tx, count);
    if (!outcome) {
        std::cerr << outcome.error().what() << '\n';
    }
    return static_cast<int>(outcome.code());
}

}  // namespace

int main(int argc, char **argv) try {
    check(argc == 6, "arguments");
    alarm(120);
    const bool sends = std::string_view(argv[1]) == "send", bus = std::string_view(argv[2]) == "bus";
    const std::string name = argv[3];
    const auto count = std::stoull(argv[4]);
    if (std::string_view(argv[2]) == "topic") {
        if (sends) {
            auto tx = ramway::publisher::open_or_create(name, {.capacity = 1 << 16}).value();
            tx.wait_for_subscribers(1).value();
            return sends_all(tx, count);
        }
        auto rx = ramway::subscriber::open_or_create(name, {.capacity = 1 << 16}).value();
        return static_cast<int>(recv_all(rx));
    }
    ramway::sender tx;
    ramway::receiver rx;
    if (bus) {
        std::tie(tx, rx) = (sends ? ramway::bus::listen(name, {.capacity = 1 << 16})
                                  : ramway::bus::connect(name, {.timeout = 60s}))
                               .value()
                               .split();
    } else if (sends) {
        tx = ramway::sender::open_or_create(name, {.capacity = 1 << 16}).value();
    } else {
        rx = ramway::receiver::open_or_create(name, {.capacity = 1 << 16}).value();
    }
    return sends ? sends_all(tx, count) : static_cast<int>(recv_all(rx));
} catch (const ramway::exception &e) {
    std::cerr << e.what() << '\n';
    return static_cast<int>(e.code());
}
