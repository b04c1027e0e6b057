// echo and ping.
#include "program.hpp"

#include <algorithm>
#include <cstdio>

static void answer(ramway::sender &tx, std::chrono::nanoseconds limit, const made &m) {
    auto slot = (limit == ramway::forever ? tx.reserve(m.data.size()) : tx.reserve_for(limit, m.data.size())).value();
    std::ranges::copy(m.data, slot.data().begin());
    std::move(slot).commit(m.type_id, m.tag, m.data.size()).value();
}

static ramway::result<ramway::message> receive(ramway::receiver &rx, std::chrono::nanoseconds limit) {
    return limit == ramway::forever ? rx.recv() : rx.recv_for(limit);
}

void echo(const arguments &args) {
    ends e(args, args.text("back"), args.text("ring"));
    e.attached_sender();
    const auto limit = args.limit();
    std::int64_t received = 0, first = -1, last = -1;
    std::uint64_t bytes = 0;
    for (;;) {
        const auto began = limit == ramway::forever ? clock_type::time_point() : clock_type::now();
        const auto m = receive(e.rx, limit);
        if (!m) {
            say(std::string("end name=") + name_of(m.code()) + " number=" + std::to_string(static_cast<int>(m.code())) +
                " received=" + std::to_string(received) + " first=" + std::to_string(first) + " last=" +
                std::to_string(last) + " bytes=" + std::to_string(bytes) + " elapsed_ms=" +
                std::to_string(limit == ramway::forever ? 0 : ms_since(began)));
            break;
        }
        last = static_cast<std::int64_t>(m->tag() & 0xFFFFFFFFu);
        if (received++ == 0) first = last;
        bytes += m->size();
        answer(e.tx, limit, {m->type_id(), m->tag(), m->data()});
    }
    e.close();
}

void ping(const arguments &args) {
    ends e(args, args.text("ring"), args.text("back"));
    e.attached_sender();
    const messages all(args.text("sizes", "mixed"), e.tx.max_message_len());
    const auto count = args.number("count", 0);
    timer times(count, args.number("group", 1));
    for (std::int64_t seq = 0; seq < count; seq++) {
        const auto number = static_cast<std::uint64_t>(seq);
        answer(e.tx, args.limit(), all[number]);
        const auto m = receive(e.rx, args.limit()).value();
        all.check(number, m.type_id(), m.tag(), m.data());
        times.trip(seq);
    }
    times.report();
    e.close();
}

void timer::report() {
    std::ranges::sort(ns_);
    const auto at = [&](double part) {
        return ns_.empty() ? 0.0 : ns_[static_cast<std::size_t>(static_cast<double>(ns_.size() - 1) * part)];
    };
    char line[160];
    std::snprintf(line, sizeof line, "rtt count=%lld min_ns=%.1f p50_ns=%.1f p99_ns=%.1f max_ns=%.1f",
                  static_cast<long long>(count_), at(0), at(0.5), at(0.99), at(1));
    say(line);
}
