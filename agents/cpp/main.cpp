// Lines, messages, what is open, and which command it is.
#include "agent.hpp"

#include <algorithm>
#include <array>
#include <sstream>
#include <unistd.h>

std::optional<line> line::next() {
    std::string text, field;
    if (!std::getline(std::cin, text)) return {};
    line found;
    std::istringstream words(text);
    words >> found.word;
    while (words >> field) {
        const auto equals = field.find('=');
        found.fields_[field.substr(0, equals)] = equals == std::string::npos ? "" : field.substr(equals + 1);
    }
    return found;
}

std::string line::text(const std::string &key, const std::string &otherwise) {
    auto found = fields_.extract(key);
    return found ? std::move(found.mapped()) : otherwise;
}

std::int64_t line::number(const std::string &key, std::optional<std::int64_t> otherwise) {
    const auto found = text(key);
    if (!found.empty()) return std::stoll(found);
    if (!otherwise) throw refused(key + " is missing");
    return *otherwise;
}

ramway::wait_policy line::wait() {
    const auto how = text("wait", "hybrid");
    return how == "spin" ? ramway::wait_policy::spin : how == "block" ? ramway::wait_policy::block : ramway::wait_policy::hybrid;
}

void line::end() const {
    if (!fields_.empty()) throw refused(word + " does not know " + fields_.begin()->first);
}

limits::limits(line &line) {
    const auto ms = line.number("timeout", 20000), us = line.number("poll", -1);
    whole = ms == 0 ? ramway::forever : std::chrono::milliseconds(ms);
    polls = us >= 0;
    call = polls ? std::chrono::microseconds(us) : whole;
}

std::uint32_t crc32(std::span<const std::byte> bytes) {
    static const auto table = [] {
        std::array<std::uint32_t, 256> t{};
        for (std::uint32_t i = 0; i < 256; i++) {
            std::uint32_t c = i;
            for (int bit = 0; bit < 8; bit++) c = (c & 1) ? 0xEDB88320u ^ (c >> 1) : c >> 1;
            t[i] = c;
        }
        return t;
    }();
    std::uint32_t crc = ~0u;
    for (const auto b : bytes) crc = table[(crc ^ std::to_integer<std::uint32_t>(b)) & 0xFF] ^ (crc >> 8);
    return ~crc;
}

messages::messages(const std::string &sizes, std::uint64_t max) : sizes_(sizes), max_(max) {
    if (sizes != "mixed" && sizes != "ramp") fixed_ = std::stoull(sizes);
    pattern_.resize(std::max(fixed_, max) + 256);
    for (std::size_t i = 0; i < pattern_.size(); i++) pattern_[i] = static_cast<std::byte>(i);
}

std::uint64_t messages::length(std::uint64_t seq) const {
    const std::uint64_t x = static_cast<std::uint32_t>(seq * 2654435761u);
    if (sizes_ == "ramp") return seq % (max_ + 1);
    if (sizes_ != "mixed") return fixed_;
    if (seq % 1000 == 999) return max_;
    if (seq % 100 == 0) return 0;
    return seq % 50 == 1 ? x % (max_ + 1) : x % 257;
}

static std::uint64_t tag_of(std::uint64_t seq, std::span<const std::byte> data) {
    return static_cast<std::uint64_t>(crc32(data)) << 32 | (seq & 0xFFFFFFFFu);
}

made messages::operator[](std::uint64_t seq) const {
    const auto data = std::span(pattern_).subspan(seq % 256, length(seq));
    return {static_cast<std::uint32_t>(seq % 60000), tag_of(seq, data), data};
}

void messages::check(std::uint64_t seq, std::uint32_t type_id, std::uint64_t tag, std::span<const std::byte> data) const {
    const auto expected = std::span(pattern_).subspan(seq % 256, length(seq));
    if (data.size() != expected.size()) throw bad_message(seq, "length " + std::to_string(data.size()));
    if (type_id != seq % 60000) throw bad_message(seq, "type id " + std::to_string(type_id));
    // Of the bytes that came, so that each of them is read.
    if (tag != tag_of(seq, data)) throw bad_message(seq, "tag " + std::to_string(tag));
    if (!std::ranges::equal(data, expected)) throw bad_message(seq, "the bytes");
}

std::uint64_t longest(std::uint64_t capacity, bool topic) {
    return topic ? std::min<std::uint64_t>(capacity / 2 - 32, 2147483615u) : std::min<std::uint64_t>(capacity - 16, 2147483631u);
}

std::string named(ramway::status status) {
    const auto number = static_cast<int>(status);
    return std::string("name=") + (number == 0 ? "Count" : ramway_status_name(number)) + " number=" + std::to_string(number);
}

std::int64_t ms_since(clock_type::time_point began) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(clock_type::now() - began).count();
}

// Rings, or a bus.
static void open_rings(ends &e, line &line, bool consumer) {
    const bool create = line.yes("create");
    const auto ring = line.text("ring"), back = line.text("back"), listen = line.text("listen"), connect = line.text("connect");
    const auto capacity = static_cast<std::uint64_t>(line.number("capacity", 65536));
    const auto align = static_cast<std::uint32_t>(line.number("align", 16));
    ramway::options o{.wait = line.wait(), .timeout = open_timeout};
    o.prefault = line.yes("prefault");
    line.end();
    if (!listen.empty() || !connect.empty()) {
        ramway::bus_options b{.wait = o.wait};
        if (!listen.empty()) b.capacity = capacity, b.align = align;
        else b.timeout = open_timeout;
        auto bus = listen.empty() ? ramway::bus::connect(connect, b) : ramway::bus::listen(listen, b, open_timeout);
        std::tie(e.tx, e.rx) = std::move(bus).value().split();
    } else {
        if (create) o.capacity = capacity, o.align = align;
        const auto &to = consumer ? back : ring, &from = consumer ? ring : back;
        if (!to.empty()) e.tx = (create ? ramway::sender::create(to, o) : ramway::sender::open(to, o)).value();
        if (!from.empty()) e.rx = (create ? ramway::receiver::create(from, o) : ramway::receiver::open(from, o)).value();
    }
}

static void open(ends &e, line &line) {
    const auto topic = line.text("topic"), rpc = line.text("rpc"), role = line.text("role");
    if (!rpc.empty()) {
        if (role != "server" && role != "client") throw refused("role=" + role);
        return (role == "server" ? open_server : open_client)(e, line, rpc);
    }
    const bool consumer = role == "consumer";
    if (topic.empty()) open_rings(e, line, consumer);
    else open_topic(e, line, topic, consumer);
    const auto attached = []<class End>(const End &end) {
        say("attached pid=", getpid(), " epoch=", end.epoch(), " peer_epoch=", end.peer_epoch(), " capacity=", end.capacity(),
            " max=", longest(end.capacity(), of_topic<End>));
    };
    if (e.pub) attached(e.pub);
    else if (e.sub) attached(e.sub);
    else if (consumer) attached(e.rx);
    else attached(e.tx);
}

static void close(ends &e, line &line) {
    line.end();
    // What closing says on a bus whose peer is dead does not matter.
    if (e.tx) (void)e.tx.close();
    if (e.rx) (void)e.rx.close();
    if (e.pub) (void)e.pub.close();
    if (e.sub) (void)e.sub.close();
    const auto server = e.server;
    e = {};
    if (server) close_server(*server);
    say("closed");
}

static void about(ends &, line &line) {
    line.end();
    say("about text=C++");
}

static void obey(ends &e, line &line) {
    struct command {
        void (*run)(ends &, class line &);
        bool sends, receives;
    };
    static const std::map<std::string, command> commands{
        {"open", {open, false, false}},     {"close", {close, false, false}}, {"about", {about, false, false}},
        {"region", {region, false, false}}, {"produce", {produce, true, false}}, {"last", {last, true, false}},
        {"tensor", {tensor, true, false}},  {"write", {write, true, false}}, {"consume", {consume, false, true}},
        {"take", {take, false, true}},      {"hold", {hold, false, true}},    {"echo", {echo, true, true}},
        {"ping", {ping, true, true}},       {"measure", {measure, false, false}}};
    if (line.word != "close") {
        if (e.server) return serve_command(*e.server, line);
        if (e.client) return call_command(*e.client, line);
    }
    const auto found = commands.find(line.word);
    if (found == commands.end()) throw refused("no command: " + line.word);
    const auto [run, sends, receives] = found->second;
    if ((sends && !e.sends()) || (receives && !e.receives())) throw refused("nothing is open for " + line.word);
    run(e, line);
}

int main() {
    ends e;
    try {
        while (auto next = line::next()) {
            try {
                obey(e, *next);
            } catch (const ramway::exception &cause) {
                say("error ", named(cause.code()), " text=", cause.what());
            }
        }
        return 0;
    } catch (const bad_message &cause) {
        say("bad seq=", cause.seq, " text=", cause.what());
        return 1;
    } catch (const std::logic_error &cause) { // a number that is none
        say("refused text=", cause.what());
    } catch (const refused &cause) {
        say("refused text=", cause.what());
    }
    return 2;
}
