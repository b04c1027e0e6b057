// A client of RPC and its commands.
#include "agent.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <unistd.h>

namespace rpc = ramway::rpc;

namespace {

using ramway::status;

void same(std::uint64_t seq, const char *what, std::span<const std::byte> found, std::span<const std::byte> expected) {
    const auto wrong = [&](std::size_t a, std::size_t b) {
        throw bad_message(seq, std::string(what) + " is " + std::to_string(a) + " instead of " + std::to_string(b));
    };
    if (found.size() != expected.size()) wrong(found.size(), expected.size());
    const auto [a, b] = std::ranges::mismatch(found, expected);
    if (a != found.end()) wrong(std::to_integer<std::size_t>(*a), std::to_integer<std::size_t>(*b));
}

void fault_is(std::uint64_t seq, const rpc::call_error &error, std::uint32_t code, const std::string &text) {
    if (error.code() == code && error.text() == text) return;
    throw bad_message(seq, "error " + std::to_string(error.code()) + " with '" + error.text() + "' instead of " +
                               std::to_string(code) + " with '" + text + "'");
}

template <std::size_t N>
std::vector<std::byte> bytes_of(const std::array<std::uint32_t, N> &words) {
    const auto bytes = std::as_bytes(std::span(words));
    return {bytes.begin(), bytes.end()};
}

// How many calls had which outcome.
class tally {
  public:
    void add(const std::string &name) { names_[name]++; }
    void failed(const rpc::call_error &error) {
        const bool said = error.status() != rpc::status::none;
        add(said ? ramway_rpc_status_name(static_cast<std::uint32_t>(error.status()))
                 : ramway_status_name(static_cast<int>(error.error())));
        may_have_run_ += error.may_have_run();
    }
    // `called` and `streamed`.
    void tell(const std::string &begin) const {
        std::string all;
        for (const auto &[name, count] : names_) all += ' ' + name + '=' + std::to_string(count);
        if (cancelled > 0) all += " cancelled=" + std::to_string(cancelled);
        say(begin, all, " may_have_run=", may_have_run_, " bytes=", bytes, " elapsed_ms=", ms_since(began_));
    }
    std::uint64_t cancelled = 0, bytes = 0;

  private:
    clock_type::time_point began_ = clock_type::now();
    std::map<std::string, std::uint64_t> names_;
    std::uint64_t may_have_run_ = 0;
};

// A row of calls: what they ask, and what they must bring.
class calls {
  public:
    explicit calls(line &line)
        : named_(line.text("method")), method(named_ == "sum" ? rpc::method_id(agent_sum) : number_of(named_)),
          all_(line.text("sizes", "mixed"), static_cast<std::uint64_t>(line.number("longest", 4096))),
          meta_len_(static_cast<std::size_t>(line.number("meta", 0))), meta_(counted(0, meta_len_ + 256)),
          deadline_(line.number("deadline", -1)) {}

    std::vector<std::byte> body(std::uint64_t seq) const {
        const auto data = all_[seq].data;
        const auto number = static_cast<std::uint32_t>(seq);
        if (method == 2) return bytes_of(std::array{number, static_cast<std::uint32_t>(data.size())});
        if (method == 3) {
            auto body = bytes_of(std::array{number + 1});
            const auto text = "call " + std::to_string(seq);
            const auto bytes = std::as_bytes(std::span(text));
            body.insert(body.end(), bytes.begin(), bytes.end());
            return body;
        }
        if (method == 6 || method == 7) return {};
        return {data.begin(), data.end()};
    }
    rpc::call_options options(std::uint64_t seq) const {
        rpc::call_options o;
        o.meta = meta(seq);
        if (deadline_ >= 0) o.timeout = std::chrono::microseconds(deadline_);
        return o;
    }
    // Counts what came of a call, if it is as it must be.
    void count(tally &tally, std::uint64_t seq, const rpc::result<rpc::reply> &outcome) const {
        if (!outcome) {
            if (outcome.error().status() == rpc::status::application && method == 3) {
                fault_is(seq, outcome.error(), static_cast<std::uint32_t>(seq) + 1, "call " + std::to_string(seq));
            }
            tally.failed(outcome.error());
            return;
        }
        const auto body = outcome->body();
        const auto data = all_[seq].data;
        const bool echoes = method == 1 || method == 5;
        if (named_ == "sum") same(seq, "the reply", body, bytes_of(std::array{crc32(data)}));
        else if (method == 7) check_seven(seq, body);
        else if (echoes || method == 2) same(seq, "the reply", body, data);
        else throw bad_message(seq, "method " + named_ + " replied");
        same(seq, "the metadata", outcome->meta(), echoes ? meta(seq) : std::span<const std::byte>());
        tally.bytes += body.size();
        tally.add("Ok");
    }

  private:
    static std::uint32_t number_of(const std::string &text) { return static_cast<std::uint32_t>(std::stoul(text)); }
    std::span<const std::byte> meta(std::uint64_t seq) const {
        return std::span(meta_).subspan((seq + 1) % 256, meta_len_);
    }
    void check_seven(std::uint64_t seq, std::span<const std::byte> body) const {
        std::array<std::uint32_t, 2> words{};
        if (body.size() != sizeof words) throw bad_message(seq, "a reply of " + std::to_string(body.size()) + " bytes");
        std::memcpy(words.data(), body.data(), sizeof words);
        const auto most = deadline_ < 0 ? 0 : (deadline_ + 999) / 1000;
        if (words[0] != static_cast<std::uint32_t>(getpid()) || words[1] > most || (words[1] == 0) != (most == 0)) {
            throw bad_message(seq, "process " + std::to_string(words[0]) + " and " + std::to_string(words[1]) + " ms of " +
                                       std::to_string(most));
        }
    }

    std::string named_;

  public:
    std::uint32_t method;

  private:
    messages all_;
    std::size_t meta_len_;
    std::vector<std::byte> meta_;
    std::int64_t deadline_;
};

// A call that is kept.
struct kept {
    std::shared_ptr<calls> of;
    std::uint64_t seq;
    rpc::pending pending;
};

// A stream that is kept.
struct reading {
    rpc::stream stream;
    std::uint64_t seq;
    std::size_t size;
    std::uint32_t count, code;
    std::uint64_t received = 0;
    bool ended = false;

    // Receives one element, and says how many that were: none where the stream has ended. -1: nothing came in time.
    int next(std::chrono::nanoseconds limit, tally &tally) {
        const auto taken = stream.next_for(limit);
        if (!taken && taken.error().error() == status::empty) return -1;
        if (taken && taken->has_value()) {
            const auto body = (*taken)->body();
            same(seq, "the element", body, counted(seq + received, size));
            received++, tally.bytes += body.size();
            return 1;
        }
        ended = true;
        if (taken || taken.error().status() == rpc::status::application) {
            if (received != count) throw bad_message(seq, std::to_string(received) + " elements");
            if (!taken) fault_is(seq, taken.error(), code, "after " + std::to_string(count));
            else if (code != 0) throw bad_message(seq, "it is complete in place of an error");
        }
        if (taken) tally.add("Ok");
        else tally.failed(taken.error());
        return 0;
    }
};

// A failure that ends a command.
template <class T>
T must(rpc::result<T> found) {
    if (!found) throw ramway::exception(ramway::error(found.error().error(), found.error().text()));
    return std::move(*found);
}

}  // namespace

struct calling {
    explicit calling(rpc::client of) : client(std::move(of)) {}

    void call(line &line) {
        const auto row = std::make_shared<calls>(line);
        const auto count = line.number("count", 1), start = line.number("start", 0);
        const auto in_flight = static_cast<std::size_t>(line.number("in_flight", 1));
        const bool cancel = line.yes("cancel");
        line.end();
        tally tally;
        std::deque<kept> under_way;
        const auto oldest = [&] {
            auto one = std::move(under_way.front());
            under_way.pop_front();
            if (cancel && one.seq % 2 == 1) tally.cancelled++, one.pending.cancel();
            else row->count(tally, one.seq, one.pending.wait());
        };
        for (auto seq = static_cast<std::uint64_t>(start); seq < static_cast<std::uint64_t>(start + count); seq++) {
            const auto body = row->body(seq);
            if (in_flight == 1 && !cancel) {
                row->count(tally, seq, client.call(row->method, body, row->options(seq)));
                continue;
            }
            if (under_way.size() >= in_flight) oldest();
            auto started = client.start(row->method, body, row->options(seq));
            if (started) under_way.push_back({row, seq, std::move(*started)});
            else tally.failed(started.error());
        }
        while (!under_way.empty()) oldest();
        tally.tell("called count=" + std::to_string(count));
    }
    void start(line &line) {
        const auto row = std::make_shared<calls>(line);
        const auto count = line.number("count", 1), start = line.number("start", 0);
        line.end();
        for (auto seq = static_cast<std::uint64_t>(start); seq < static_cast<std::uint64_t>(start + count); seq++) {
            all.push_back({row, seq, must(client.start(row->method, row->body(seq), row->options(seq)))});
        }
        say("started count=", count);
    }
    void collect(line &line) {
        const auto limit = std::chrono::milliseconds(line.number("timeout", 20000));
        line.end();
        tally tally;
        std::uint64_t collected = 0;
        for (; !all.empty(); all.pop_front(), collected++) {
            const auto found = all.front().pending.wait_for(limit);
            if (!found && found.error().error() == status::empty) return say("end ", named(status::timed_out));
            all.front().of->count(tally, all.front().seq, found);
        }
        tally.tell("called count=" + std::to_string(collected));
    }
    void stream(line &line) {
        const auto count = static_cast<std::uint32_t>(line.number("count")), size = static_cast<std::uint32_t>(line.number("size"));
        const auto code = static_cast<std::uint32_t>(line.number("code", 0));
        const auto rows = line.number("streams", 1), first = line.number("start", 0);
        rpc::call_options o;
        o.window = static_cast<std::uint32_t>(line.number("window", 0));
        o.timeout = std::chrono::microseconds(line.number("deadline", 0));
        line.end();
        for (auto seq = static_cast<std::uint64_t>(first); seq < static_cast<std::uint64_t>(first + rows); seq++) {
            const auto body = bytes_of(std::array{count, size, code, static_cast<std::uint32_t>(seq)});
            streams.push_back({must(client.stream(4, body, o)), seq, size, count, code});
        }
        say("started count=", rows);
    }
    void next(line &line) {
        const auto limit = std::chrono::milliseconds(line.number("timeout", 20000));
        auto rounds = line.number("count", -1);
        line.end();
        tally tally;
        std::uint64_t received = 0;
        for (; !streams.empty() && rounds != 0; rounds -= rounds > 0) {
            for (auto &one : streams) {
                const int elements = one.ended ? 0 : one.next(limit, tally);
                if (elements < 0) return say("end ", named(status::timed_out));
                received += static_cast<std::uint64_t>(elements);
            }
            std::erase_if(streams, [](const reading &one) { return one.ended; });
        }
        tally.tell("streamed received=" + std::to_string(received));
    }
    void cancel(line &line) {
        line.end();
        const auto count = streams.size() + all.size();
        for (auto &one : streams) one.stream.cancel();
        for (auto &one : all) one.pending.cancel();
        streams.clear();
        all.clear();
        say("cancelled count=", count);
    }
    void health(line &line) {
        line.end();
        const auto pinged = client.ping();
        if (pinged) say("healthy");
        else say("end ", named(pinged.code()));
    }
    void describe(line &line) {
        line.end();
        std::string text;
        for (const auto &method : client.describe().value()) {
            text += (text.empty() ? "" : ",") + std::to_string(method.number) + (method.name ? ' ' + *method.name : "");
        }
        say("described text=", text);
    }
    void state(line &line) {
        line.end();
        say("state in_flight=", client.in_flight());
    }

    rpc::client client;
    // They go before their client.
    std::deque<kept> all;
    std::vector<reading> streams;
};

std::vector<std::byte> counted(std::uint64_t first, std::size_t len) {
    std::vector<std::byte> bytes(len);
    for (std::size_t i = 0; i < len; i++) bytes[i] = static_cast<std::byte>(first + i);
    return bytes;
}

void open_client(ends &e, line &line, const std::string &name) {
    rpc::client_options o;
    o.wait = line.wait();
    o.max_buffered = static_cast<std::uint64_t>(line.number("max_buffered", 0));
    o.timeout = std::chrono::milliseconds(line.number("timeout", std::chrono::milliseconds(open_timeout).count()));
    line.end();
    e.client = std::make_shared<calling>(rpc::client::connect(name, o).value());
    say("attached pid=", getpid(), " peer_pid=", e.client->client.peer_pid(), " max_in_flight=", e.client->client.max_in_flight());
}

void call_command(calling &client, line &line) {
    static const std::map<std::string, void (calling::*)(class line &)> commands{
        {"call", &calling::call},     {"start", &calling::start},   {"collect", &calling::collect},
        {"stream", &calling::stream}, {"next", &calling::next},     {"cancel", &calling::cancel},
        {"health", &calling::health}, {"describe", &calling::describe}, {"state", &calling::state}};
    const auto found = commands.find(line.word);
    if (found == commands.end()) throw refused(line.word + " is no command of a client");
    (client.*found->second)(line);
}
