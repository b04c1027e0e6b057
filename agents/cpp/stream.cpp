// produce and consume.
#include "agent.hpp"

#include <algorithm>
#include <thread>

namespace {

using namespace std::chrono_literals;
using ramway::status;

// The keys that both have.
struct plan {
    limits limit;
    std::string how, sizes;
    std::int64_t start, count, batch, endings; // -1: not given
    bool progress;

    plan(line &line, std::int64_t together)
        : limit(line), how(line.text("how")), sizes(line.text("sizes", "mixed")), start(line.number("start", -1)),
          count(line.number("count", -1)), batch(line.number("batch", together)), endings(line.number("endings", 1)),
          progress(line.yes("progress")) {
        line.end();
    }

    // Whether the stream goes on after this, with a successor of the other side.
    bool goes_on(status s) { return (s == status::closed || s == status::peer_dead) && --endings > 0; }

    // False if none comes in time.
    template <class End>
    bool successor(const End &end, std::uint32_t noted) const {
        const auto began = clock_type::now();
        while (end.peer_epoch() == noted) {
            if (limit.whole != ramway::forever && clock_type::now() - began >= limit.whole) return false;
            std::this_thread::sleep_for(1ms);
        }
        return true;
    }
};

// Sends one message as `how` says, waiting for room for as long as a call may last.
template <class Sender>
ramway::result<void> put(Sender &tx, const plan &plan, const made &m, bool flush) {
    const auto limit = plan.how == "try" ? 0ns : plan.limit.call;
    if (plan.how != "reserve" && flush) {
        return limit == ramway::forever ? tx.send(m.type_id, m.tag, m.data) : tx.send_for(limit, m.type_id, m.tag, m.data);
    }
    auto slot = limit == ramway::forever ? tx.reserve(m.data.size()) : tx.reserve_for(limit, m.data.size());
    if (!slot) return slot.error();
    std::ranges::copy(m.data, slot->data().begin());
    return flush ? (*std::move(slot)).commit(m.type_id, m.tag, m.data.size())
                 : (*std::move(slot)).commit_unflushed(m.type_id, m.tag, m.data.size());
}

// What a consumer has seen so far.
class seen {
  public:
    seen(const plan &plan, std::uint64_t max) : plan_(plan), all_(plan.sizes, max), next_(plan.start) {}

    // Of a topic: what the message says of itself, before it is taken. The first one has 1.
    void number(std::uint64_t seq, std::uint64_t lost) {
        const auto found = static_cast<std::int64_t>(seq) - 1, gap = static_cast<std::int64_t>(lost);
        if (next_ >= 0 && next_ + gap != found) {
            throw bad_message(seq - 1, "it comes after " + std::to_string(lost) + " lost ones, and " + std::to_string(next_) + " was expected");
        }
        next_ = found;
        lost_ += gap;
    }
    // Reports how many messages an ejection cost.
    void lagged(std::uint64_t lost) {
        say("lagged lost=", lost);
        lost_ += static_cast<std::int64_t>(lost);
        if (next_ >= 0) next_ += static_cast<std::int64_t>(lost);
    }
    void take(std::uint32_t type_id, std::uint64_t tag, std::span<const std::byte> data) {
        if (next_ < 0) next_ = static_cast<std::int64_t>(tag & 0xFFFFFFFFu);
        all_.check(static_cast<std::uint64_t>(next_), type_id, tag, data);
        if (first_ < 0) first_ = next_;
        if (plan_.progress) say("at seq=", next_);
        next_++, received_++;
        bytes_ += data.size();
    }
    std::int64_t left() const {
        return plan_.count < 0 ? std::numeric_limits<std::int64_t>::max() : plan_.count - received_;
    }
    void report(status s, std::int64_t ms, bool topic) const {
        say("end ", named(s), " received=", received_, " first=", first_, " last=", first_ < 0 ? -1 : next_ - 1,
            " bytes=", bytes_, " elapsed_ms=", ms, topic ? " lost=" + std::to_string(lost_) : "");
    }

  private:
    const plan &plan_;
    messages all_;
    std::int64_t next_, first_ = -1, received_ = 0; // -1: not known yet
    std::int64_t lost_ = 0;                         // of a topic: how many messages it was told that it lost
    std::uint64_t bytes_ = 0;
};

// Receives one message, or a batch of them, as `how` says.
template <class Receiver>
class getter {
  public:
    getter(const plan &plan, Receiver &rx, seen &seen)
        : how_(plan.how), limit_(how_ == "try" ? 0ns : plan.limit.call), rx_(rx), seen_(seen),
          views_(static_cast<std::size_t>(plan.batch)), buffer_(how_ == "into" ? longest(rx.capacity(), topic) : 0) {}

    status operator()() {
        if (how_ == "into") {
            const auto meta = rx_.recv_into(buffer_, limit_);
            if (!meta) return failed(meta);
            if constexpr (topic) seen_.number(meta->seq, meta->lost);
            seen_.take(meta->type_id, meta->tag, std::span(buffer_).first(meta->len));
            return status::ok;
        }
        if (how_ == "batch") {
            const auto max = std::min(views_.size(), static_cast<std::size_t>(seen_.left()));
            const auto batch = rx_.recv_batch(std::span(views_).first(max), limit_);
            if (!batch) return failed(batch);
            for (const auto &m : *batch) {
                if constexpr (topic) seen_.number(m.seq, m.lost);
                seen_.take(m.plain().type_id, m.plain().tag, m.bytes());
            }
            return status::ok;
        }
        const auto m = receive(rx_, limit_);
        if (!m) return failed(m);
        if constexpr (topic) seen_.number(m->seq(), m->lost());
        seen_.take(m->type_id(), m->tag(), m->data());
        return status::ok;
    }
    // How many messages an ejection cost, where the last call said so.
    std::uint64_t lost() const { return lost_; }

  private:
    static constexpr bool topic = of_topic<Receiver>;

    status failed(const auto &result) {
        lost_ = result.error().lost();
        return result.code();
    }

    std::string how_;
    std::chrono::nanoseconds limit_;
    Receiver &rx_;
    seen &seen_;
    std::vector<typename Receiver::view> views_;
    std::vector<std::byte> buffer_;
    std::uint64_t lost_ = 0;
};

template <class Sender>
void produce_by(Sender &tx, line &line) {
    plan plan(line, 1);
    if (plan.count < 0) throw refused("count is missing");
    const messages all(plan.sizes, tx.max_message_len());
    auto next = std::max<std::int64_t>(plan.start, 0), sent = std::int64_t{0};
    const auto last = next + plan.count;
    while (next < last) {
        const bool flush = (sent + 1) % plan.batch == 0 || next + 1 == last;
        const auto noted = tx.peer_epoch();
        const auto began = clock_type::now();
        const auto s = plan.limit.wait([&] { return put(tx, plan, all[static_cast<std::uint64_t>(next)], flush).code(); });
        if (s != status::ok) {
            const auto report = [&](status s) {
                say("end ", named(s), " sent=", sent, " next=", next, " elapsed_ms=", ms_since(began));
            };
            report(s);
            if (!plan.goes_on(s)) return;
            if (plan.successor(tx, noted)) continue;
            return report(status::timed_out);
        }
        if (plan.progress) say("at seq=", next);
        sent++, next++;
    }
    say("sent count=", sent, " next=", next);
}

template <class Receiver>
void consume_by(Receiver &rx, line &line) {
    constexpr bool topic = of_topic<Receiver>;
    plan plan(line, 32);
    seen seen(plan, longest(rx.capacity(), topic));
    getter get(plan, rx, seen);
    std::int64_t took = 0;
    while (seen.left() > 0) {
        const auto noted = rx.peer_epoch();
        const auto began = clock_type::now();
        const auto s = plan.limit.wait([&] { return get(); });
        took = ms_since(began);
        if (s == status::ok) continue;
        if (s == status::lagged) {
            seen.lagged(get.lost());
            continue;
        }
        seen.report(s, took, topic);
        if (!plan.goes_on(s)) return;
        if (!plan.successor(rx, noted)) return seen.report(status::timed_out, took, topic);
    }
    seen.report(status::ok, took, topic);
}

} // namespace

void produce(ends &e, line &line) {
    if (e.pub) produce_by(e.pub, line);
    else produce_by(e.tx, line);
}

void consume(ends &e, line &line) {
    if (e.sub) consume_by(e.sub, line);
    else consume_by(e.rx, line);
}
