// measure: the loops that are timed.
#include "agent.hpp"

#include <algorithm>
#include <cstring>

namespace {

// Message number n has the words n % cycle and those after it.
constexpr std::uint64_t cycle = 4096;

struct loop {
    std::size_t size;
    std::uint64_t count, batch, group;
    std::uint64_t words = 0;
    std::vector<std::int64_t> stamps; // when each group began, and the last one ended
    std::vector<ramway::message_view> views;
};

std::int64_t now() { return std::chrono::duration_cast<std::chrono::nanoseconds>(clock_type::now().time_since_epoch()).count(); }

inline void fill(std::span<std::byte> bytes, std::uint64_t seq) {
    for (std::size_t i = 0; i < bytes.size() / 8; i++) {
        const std::uint64_t word = seq + i;
        std::memcpy(bytes.data() + 8 * i, &word, 8);
    }
}

inline std::uint64_t sum(std::span<const std::byte> bytes) {
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < bytes.size() / 8; i++) {
        std::uint64_t word;
        std::memcpy(&word, bytes.data() + 8 * i, 8);
        total += word;
    }
    return total;
}

inline void put(ramway::sender &tx, std::size_t size, std::uint64_t seq, bool flush) {
    auto slot = tx.reserve(size).value();
    fill(slot.data(), seq % cycle);
    (flush ? std::move(slot).commit(size) : std::move(slot).commit_unflushed(size)).value();
}

// Receives at least one message and at most `most`. How many?
inline std::uint64_t get(ramway::receiver &rx, loop &loop, std::uint64_t most) {
    if (most == 1) {
        loop.words += sum(rx.recv().value().data());
        return 1;
    }
    const auto messages = rx.recv_batch(std::span(loop.views).first(most)).value();
    for (const auto &m : messages) loop.words += sum(m.bytes());
    return messages.size();
}

void ping_all(ends &e, loop &loop) {
    auto due = loop.group;
    loop.stamps.push_back(now());
    for (std::uint64_t seq = 0; seq < loop.count; seq++) {
        put(e.tx, loop.size, seq, true);
        get(e.rx, loop, 1);
        if (seq + 1 != due) continue;
        due += loop.group;
        loop.stamps.push_back(now());
    }
}

void echo_all(ends &e, loop &loop) {
    for (std::uint64_t seq = 0; seq < loop.count; seq++) {
        get(e.rx, loop, 1);
        put(e.tx, loop.size, seq, true);
    }
}

void send_all(ends &e, loop &loop) {
    std::uint64_t together = 0;
    for (std::uint64_t seq = 0; seq < loop.count; seq++) {
        const bool flush = ++together == loop.batch || seq + 1 == loop.count;
        if (flush) together = 0;
        put(e.tx, loop.size, seq, flush);
    }
}

void receive_all(ends &e, loop &loop) {
    std::uint64_t seen = 0, due = 1;
    while (seen < loop.count) {
        seen += get(e.rx, loop, std::min(loop.batch, loop.count - seen));
        if (seen < due) continue;
        // A stamp stands for a group: what came beyond it belongs to the next.
        due += loop.group;
        loop.stamps.push_back(now());
    }
}

} // namespace

void measure(ends &e, line &line) {
    const std::map<std::string, void (*)(ends &, loop &)> loops{
        {"ping", ping_all}, {"echo", echo_all}, {"send", send_all}, {"receive", receive_all}};
    const auto what = line.text("do");
    const auto number = [&](const char *key) { return static_cast<std::uint64_t>(line.number(key, 1)); };
    loop loop{.size = number("size"), .count = number("count"), .batch = number("batch"), .group = number("group"), .stamps = {}, .views = {}};
    const auto policy = line.wait();
    line.end();
    const auto found = loops.find(what);
    if (found == loops.end()) throw refused("do=" + what);
    if (e.tx) e.tx.set_wait_policy(policy).value();
    if (e.rx) e.rx.set_wait_policy(policy).value();
    loop.views.resize(loop.batch);
    loop.stamps.reserve(loop.count / loop.group + 2);
    say("ready");
    // The other side is told first: it polls by then.
    if (what == "ping" || what == "send") line::next();
    const auto began = now();
    found->second(e, loop);
    const auto ended = now();
    std::string samples;
    for (std::size_t i = 1; i < loop.stamps.size(); i++) {
        samples += (i > 1 ? "," : "") + std::to_string(loop.stamps[i] - loop.stamps[i - 1]);
    }
    say("measured began_ns=", began, " ended_ns=", ended, " words=", loop.words, " samples=", samples);
}
