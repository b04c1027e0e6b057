// echo, ping, last, take, region, write and hold.
#include "agent.hpp"

#include <algorithm>

static void answer(ramway::sender &tx, std::chrono::nanoseconds limit, const made &m) {
    auto slot = (limit == ramway::forever ? tx.reserve(m.data.size()) : tx.reserve_for(limit, m.data.size())).value();
    std::ranges::copy(m.data, slot.data().begin());
    std::move(slot).commit(m.type_id, m.tag, m.data.size()).value();
}

void echo(ends &e, line &line) {
    const auto limit = limits(line).whole;
    line.end();
    std::int64_t received = 0, first = -1, last = -1;
    std::uint64_t bytes = 0;
    for (;;) {
        const auto began = clock_type::now();
        const auto m = receive(e.rx, limit);
        if (!m) {
            return say("end ", named(m.code()), " received=", received, " first=", first, " last=", last, " bytes=", bytes,
                       " elapsed_ms=", ms_since(began));
        }
        last = static_cast<std::int64_t>(m->tag() & 0xFFFFFFFFu);
        if (received++ == 0) first = last;
        bytes += m->size();
        answer(e.tx, limit, {m->type_id(), m->tag(), m->data()});
    }
}

void ping(ends &e, line &line) {
    const auto limit = limits(line).whole;
    const auto count = static_cast<std::uint64_t>(line.number("count"));
    const messages all(line.text("sizes", "mixed"), e.tx.max_message_len());
    line.end();
    for (std::uint64_t seq = 0; seq < count; seq++) {
        answer(e.tx, limit, all[seq]);
        const auto m = receive(e.rx, limit).value();
        all.check(seq, m.type_id(), m.tag(), m.data());
    }
    say("answered count=", count);
}

void last(ends &e, line &line) {
    line.end();
    if (const auto tag = e.pub ? e.pub.last_tag() : e.tx.last_tag()) say("last tag=", *tag);
    else say("last none");
}

template <class Receiver>
static void take_by(Receiver &rx, line &line) {
    const auto limit = limits(line).whole;
    const bool tensor = line.yes("tensor");
    const auto how = line.text("how");
    if (!how.empty() && how != "try") throw refused("how=" + how);
    line.end();
    const auto m = how == "try" ? rx.try_recv() : receive(rx, limit);
    if (!m && m.code() == ramway::status::lagged) return say("end ", named(m.code()), " lost=", m.error().lost());
    if (!m) return say("end ", named(m.code()));
    if (tensor && say_tensor(m->tensor(), m->tag())) return;
    std::string stamp;
    if constexpr (of_topic<Receiver>) stamp = " seq=" + std::to_string(m->seq()) + " lost=" + std::to_string(m->lost());
    say("message type_id=", m->type_id(), " tag=", m->tag(), " len=", m->size(), " crc32=", crc32(m->data()), stamp);
}

void take(ends &e, line &line) {
    if (e.sub) take_by(e.sub, line);
    else take_by(e.rx, line);
}

void region(ends &, line &line) {
    const auto name = line.text("name");
    line.end();
    const auto region = ramway::region::open(name, {.timeout = open_timeout}).value();
    say("region len=", region.data().size(), " crc32=", crc32(region.data()));
}

// Writes and reads single bytes of a message by its address, until `release`.
static void look_at(volatile std::byte *address, std::size_t len, std::uint64_t tag) {
    say("view addr=", const_cast<const std::byte *>(address), " len=", len, " tag=", tag);
    while (auto line = line::next()) {
        const auto offset = static_cast<std::size_t>(line->number("offset", 0));
        if (offset >= len) throw refused("offset");
        if (line->word == "poke") {
            address[offset] = static_cast<std::byte>(line->number("value"));
            say("poked");
        } else if (line->word == "peek") {
            say("byte value=", static_cast<int>(address[offset]));
        } else if (line->word == "release") {
            return say("released");
        } else {
            throw refused(line->word + " while a message is held");
        }
        line->end();
    }
}

// Reserves, fills, and commits what is to be kept.
template <class Sender>
static void write_by(Sender &tx, line &line) {
    const auto len = static_cast<std::size_t>(line.number("len"));
    const auto kept = static_cast<std::size_t>(line.number("kept", static_cast<std::int64_t>(len)));
    const bool unflushed = line.yes("unflushed");
    line.end();
    auto slot = tx.reserve_for(open_timeout, len).value();
    const auto data = slot.data();
    std::ranges::fill(data, std::byte{0x11});
    (unflushed ? std::move(slot).commit_unflushed(kept) : std::move(slot).commit(kept)).value();
    look_at(data.data(), len, 0);
}

void write(ends &e, line &line) {
    if (e.pub) write_by(e.pub, line);
    else write_by(e.tx, line);
}

template <class Receiver>
static void hold_by(Receiver &rx, line &line) {
    line.end();
    const auto m = receive(rx, open_timeout).value();
    look_at(const_cast<std::byte *>(m.data().data()), m.size(), m.tag());
}

void hold(ends &e, line &line) {
    if (e.sub) hold_by(e.sub, line);
    else hold_by(e.rx, line);
}
