// flood, drain and the ping of `speed`: the loops that are measured.
#include "program.hpp"

#include <algorithm>
#include <cstring>

static inline void fill(std::span<std::byte> bytes, std::uint64_t seq) {
    for (std::size_t i = 0; i < bytes.size() / 8; i++) {
        const std::uint64_t word = seq + i;
        std::memcpy(bytes.data() + 8 * i, &word, 8);
    }
}

static inline std::uint64_t sum(std::span<const std::byte> bytes) {
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < bytes.size() / 8; i++) {
        std::uint64_t word;
        std::memcpy(&word, bytes.data() + 8 * i, 8);
        total += word;
    }
    return total;
}

static inline void put(ramway::sender &tx, std::size_t size, std::uint64_t seq, bool flush) {
    auto slot = tx.reserve(size).value();
    fill(slot.data(), seq);
    (flush ? std::move(slot).commit(size) : std::move(slot).commit_unflushed(size)).value();
}

static std::size_t size_of(const arguments &args) { return static_cast<std::size_t>(args.number("sizes", 32)); }

void flood(const arguments &args) {
    ends e(args, args.text("ring"), "");
    e.attached_sender();
    const auto size = size_of(args);
    const auto count = args.number("count", 0), batch = args.number("batch", 1);
    std::int64_t in_batch = 0;
    for (std::int64_t seq = 0; seq < count; seq++) {
        const bool flush = ++in_batch == batch || seq + 1 == count;
        if (flush) in_batch = 0;
        put(e.tx, size, static_cast<std::uint64_t>(seq), flush);
    }
    say("sent count=" + std::to_string(count) + " next=" + std::to_string(count));
    e.close();
}

void drain(const arguments &args) {
    ends e(args, "", args.text("ring"));
    e.attached_receiver();
    const auto count = args.number("count", 0), batch = args.number("batch", 1), warm = count / 10;
    std::vector<ramway::message_view> views(static_cast<std::size_t>(batch));
    std::uint64_t total = 0;
    const auto take = [&](std::int64_t from, std::int64_t until) {
        while (from < until) {
            if (batch == 1) {
                total += sum(e.rx.recv().value().data());
                from++;
                continue;
            }
            const auto messages = e.rx.recv_batch(std::span(views).first(static_cast<std::size_t>(std::min(batch, until - from)))).value();
            for (const auto &m : messages) total += sum(m.bytes());
            from += static_cast<std::int64_t>(messages.size());
        }
    };
    take(0, warm);
    const auto began = clock_type::now();
    take(warm, count);
    const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(clock_type::now() - began).count();
    say("rate messages=" + std::to_string(count - warm) + " ns=" + std::to_string(ns) + " sum=" + std::to_string(total));
    e.close();
}

void fast_ping(const arguments &args) {
    ends e(args, args.text("ring"), args.text("back"));
    e.attached_sender();
    const auto size = size_of(args);
    const auto count = args.number("count", 0);
    std::uint64_t total = 0;
    timer times(count, args.number("group", 1));
    for (std::int64_t seq = 0; seq < count; seq++) {
        put(e.tx, size, static_cast<std::uint64_t>(seq), true);
        total += sum(e.rx.recv().value().data());
        times.trip(seq);
    }
    times.report();
    say("sum value=" + std::to_string(total));
    e.close();
}
