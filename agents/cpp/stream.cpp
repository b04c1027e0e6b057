// produce, consume and die.
#include "program.hpp"

#include <algorithm>

// Sends one message as --how says, waiting for room for as long as a wait may last.
static ramway::result<void> put(ramway::sender &tx, const arguments &args, const made &m, bool flush) {
    const auto how = args.text("how", "send");
    const auto limit = how == "try" ? std::chrono::nanoseconds(0) : args.call_limit();
    if (how != "reserve" && flush) {
        return limit == ramway::forever ? tx.send(m.type_id, m.tag, m.data) : tx.send_for(limit, m.type_id, m.tag, m.data);
    }
    auto slot = limit == ramway::forever ? tx.reserve(m.data.size()) : tx.reserve_for(limit, m.data.size());
    if (!slot) return slot.error();
    std::ranges::copy(m.data, slot->data().begin());
    return flush ? (*std::move(slot)).commit(m.type_id, m.tag, m.data.size())
                 : (*std::move(slot)).commit_unflushed(m.type_id, m.tag, m.data.size());
}

// With --poll, whether a call that found nothing is made again: for as long as a wait may last. A time-out of 0 says full
// and empty, and at the end of the wait it is timed_out whatever the last call said.
static bool poll_again(const arguments &args, ramway::status &s, clock_type::time_point began) {
    if (!args.has("poll") || (s != ramway::status::timed_out && s != ramway::status::full && s != ramway::status::empty)) return false;
    if (args.limit() == ramway::forever || clock_type::now() - began < args.limit()) return true;
    s = ramway::status::timed_out;
    return false;
}

static ramway::status put_polling(ramway::sender &tx, const arguments &args, const made &m, bool flush) {
    const auto began = clock_type::now();
    auto s = put(tx, args, m, flush).code();
    while (poll_again(args, s, began)) s = put(tx, args, m, flush).code();
    return s;
}

// Waits for a successor of the other side; false if none comes in time.
template <class End>
static bool successor(const arguments &args, const End &end, std::uint32_t noted) {
    const auto began = clock_type::now();
    while (end.peer_epoch() == noted) {
        if (args.limit() != ramway::forever && clock_type::now() - began >= args.limit()) return false;
        sleep_us(1000);
    }
    return true;
}

static void report(ramway::status s, std::int64_t sent, std::int64_t next, std::int64_t ms) {
    say(std::string("end name=") + name_of(s) + " number=" + std::to_string(static_cast<int>(s)) + " sent=" +
        std::to_string(sent) + " next=" + std::to_string(next) + " elapsed_ms=" + std::to_string(ms));
}

void produce(const arguments &args) {
    ends e(args, args.text("ring"), "");
    e.attached_sender();
    const messages all(args.text("sizes", "mixed"), e.tx.max_message_len());
    const auto start = args.number("start", 0), end = start + args.number("count", 0);
    const auto batch = std::max<std::int64_t>(args.number("batch", 1), 1), wanted = args.number("endings", 1);
    const auto pace = args.number("pace", 0);
    const bool progress = args.yes("progress");
    auto next = start;
    if (args.yes("resume")) {
        if (const auto tag = e.tx.last_tag()) next = static_cast<std::int64_t>(*tag & 0xFFFFFFFFu) + 1;
        say("resuming next=" + std::to_string(next));
    }
    if (args.yes("oversize")) {
        const auto seq = static_cast<std::uint64_t>(next);
        const auto outcome = put(e.tx, args, all.of_length(seq, e.tx.max_message_len() + 1), true);
        if (outcome) throw bad_message(seq, "a message longer than the longest was sent");
        report(outcome.code(), 0, next, 0);
    }
    std::int64_t sent = 0, endings = 0;
    while (next < end) {
        const bool flush = (sent + 1) % batch == 0 || next + 1 == end;
        const auto epoch = e.tx.peer_epoch();
        const auto began = clock_type::now();
        if (const auto s = put_polling(e.tx, args, all[static_cast<std::uint64_t>(next)], flush); s != ramway::status::ok) {
            report(s, sent, next, ms_since(began));
            if (!is_ending(s) || ++endings >= wanted) break;
            if (successor(args, e.tx, epoch)) continue;
            report(ramway::status::timed_out, sent, next, ms_since(began));
            break;
        }
        if (progress) say("at seq=" + std::to_string(next));
        sent++, next++;
        if (pace > 0) sleep_us(pace);
    }
    if (next >= end) say("sent count=" + std::to_string(sent) + " next=" + std::to_string(next));
    linger(args);
    e.close();
}

namespace {
// What a consumer has seen so far.
class seen {
  public:
    seen(const arguments &args, std::uint64_t max)
        : all_(args.text("sizes", "mixed"), max), count_(args.number("count", -1)), until_(args.number("until", -1)),
          work_(args.number("work", 0)), progress_(args.yes("progress")), next_(args.number("start", -1)) {}

    void take(std::uint32_t type_id, std::uint64_t tag, std::span<const std::byte> data) {
        if (next_ < 0) next_ = static_cast<std::int64_t>(tag & 0xFFFFFFFFu);
        all_.check(static_cast<std::uint64_t>(next_), type_id, tag, data);
        if (first_ < 0) first_ = next_;
        if (progress_) say("at seq=" + std::to_string(next_));
        if (work_ > 0) sleep_us(work_);
        next_++, received_++;
        bytes_ += data.size();
    }
    std::int64_t left() const {
        constexpr auto all = std::numeric_limits<std::int64_t>::max();
        return std::min(count_ < 0 ? all : count_ - received_, until_ < 0 ? all : until_ - std::max<std::int64_t>(next_, 0));
    }
    std::int64_t last() const { return first_ < 0 ? -1 : next_ - 1; }
    void report(const char *name, int number, std::int64_t ms) const {
        say(std::string("end name=") + name + " number=" + std::to_string(number) + " received=" +
            std::to_string(received_) + " first=" + std::to_string(first_) + " last=" + std::to_string(last()) +
            " bytes=" + std::to_string(bytes_) + " elapsed_ms=" + std::to_string(ms));
    }

  private:
    messages all_;
    std::int64_t count_, until_, work_;
    bool progress_;
    std::int64_t next_, first_ = -1, received_ = 0; // -1: not known yet
    std::uint64_t bytes_ = 0;
};

// Receives one message, or a batch of them, as --how says.
class getter {
  public:
    getter(const arguments &args, ramway::receiver &rx, seen &seen)
        : how_(args.text("how", "recv")), limit_(how_ == "try" ? std::chrono::nanoseconds(0) : args.call_limit()), rx_(rx),
          seen_(seen), views_(static_cast<std::size_t>(std::max<std::int64_t>(args.number("batch", 32), 1))),
          buffer_(how_ == "into" ? longest(rx.capacity()) : 0) {}

    ramway::status operator()() {
        if (how_ == "into") {
            const auto meta = rx_.recv_into(buffer_, limit_);
            if (meta) seen_.take(meta->type_id, meta->tag, std::span(buffer_).first(meta->len));
            return meta.code();
        }
        if (how_ == "batch") {
            const auto max = std::min(views_.size(), static_cast<std::size_t>(seen_.left()));
            const auto batch = rx_.recv_batch(std::span(views_).first(max), limit_);
            if (!batch) return batch.code();
            for (const auto &m : *batch) seen_.take(m.type_id, m.tag, m.bytes());
            return ramway::status::ok;
        }
        const auto m = limit_ == ramway::forever ? rx_.recv() : rx_.recv_for(limit_);
        if (m) seen_.take(m->type_id(), m->tag(), m->data());
        return m.code();
    }

  private:
    std::string how_;
    std::chrono::nanoseconds limit_;
    ramway::receiver &rx_;
    seen &seen_;
    std::vector<ramway::message_view> views_;
    std::vector<std::byte> buffer_;
};
} // namespace

void consume(const arguments &args) {
    ends e(args, "", args.text("ring"));
    e.attached_receiver();
    seen seen(args, longest(e.rx.capacity()));
    getter get(args, e.rx, seen);
    const auto wanted = args.number("endings", 1);
    std::int64_t endings = 0, took = 0;
    const char *name = "Count";
    int number = 0;
    while (seen.left() > 0) {
        const auto epoch = e.rx.peer_epoch();
        const auto began = clock_type::now();
        auto status = get();
        while (poll_again(args, status, began)) status = get();
        took = ms_since(began);
        if (status == ramway::status::ok) continue;
        if (is_ending(status) && ++endings < wanted) {
            seen.report(name_of(status), static_cast<int>(status), took);
            if (successor(args, e.rx, epoch)) continue;
            status = ramway::status::timed_out;
        }
        name = name_of(status);
        number = static_cast<int>(status);
        break;
    }
    seen.report(name, number, took);
    linger(args);
    e.close();
}

void die(const arguments &args) {
    const auto count = args.number("count", 0);
    if (args.producer()) {
        ends e(args, args.text("ring"), "");
        e.attached_sender();
        const messages all(args.text("sizes", "mixed"), e.tx.max_message_len());
        auto next = static_cast<std::uint64_t>(args.number("start", 0));
        for (const auto end = next + static_cast<std::uint64_t>(count); next < end; next++) {
            put(e.tx, args, all[next], true).value();
        }
        const auto m = all[next];
        const auto half = m.data.size() / 2;
        auto slot = e.tx.reserve(m.data.size()).value();
        std::ranges::copy(m.data.first(half), slot.data().begin());
        std::move(slot).commit_unflushed(m.type_id, m.tag, half).value();
        say("dying next=" + std::to_string(next));
        kill_myself();
    }
    ends e(args, "", args.text("ring"));
    e.attached_receiver();
    seen seen(args, longest(e.rx.capacity()));
    for (std::int64_t i = 1;; i++) {
        const auto m = e.rx.recv().value();
        seen.take(m.type_id(), m.tag(), m.data());
        if (i < count) continue;
        say("dying next=" + std::to_string(seen.last()));
        kill_myself();
    }
}
