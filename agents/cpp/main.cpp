// Flags, messages, places, and which command it is.
#include "program.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <iostream>
#include <poll.h>
#include <sched.h>
#include <set>
#include <thread>
#include <unistd.h>

using namespace std::chrono_literals;

static const std::set<std::string> known{
    "align",  "back",     "batch", "capacity", "check", "connect", "count",  "cpu",  "create", "endings",
    "group",  "how",      "linger", "listen",  "oversize", "pace", "pause",  "poll", "progress", "region",
    "resume", "ring",     "role",  "size",     "sizes", "start",   "timeout", "until", "wait",  "work"};

arguments::arguments(int argc, char **argv) {
    if (argc < 2 || argc % 2 != 0) throw usage_error("COMMAND --flag value ...");
    command = argv[1];
    for (int i = 2; i < argc; i += 2) {
        const std::string flag = argv[i];
        if (!flag.starts_with("--") || !known.contains(flag.substr(2))) throw usage_error("not a flag: " + flag);
        flags_[flag.substr(2)] = argv[i + 1];
    }
}

std::string arguments::text(const std::string &flag, const std::string &by_default) const {
    const auto found = flags_.find(flag);
    return found == flags_.end() ? by_default : found->second;
}

std::int64_t arguments::number(const std::string &flag, std::int64_t by_default) const {
    return has(flag) ? std::stoll(text(flag)) : by_default;
}

std::chrono::nanoseconds arguments::limit() const {
    const auto ms = number("timeout", 20000);
    return ms == 0 ? ramway::forever : std::chrono::milliseconds(ms);
}

ramway::wait_policy arguments::wait() const {
    const auto how = text("wait", "hybrid");
    return how == "spin" ? ramway::wait_policy::spin : how == "block" ? ramway::wait_policy::block : ramway::wait_policy::hybrid;
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
    pattern_.resize(std::max(fixed_, max + 1) + 256);
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

made messages::of_length(std::uint64_t seq, std::uint64_t len) const {
    const auto data = std::span(pattern_).subspan(seq % 256, len);
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

// A named ring, opened for up to 10 s or created.
template <class End>
static End ring(const arguments &args, const std::string &name) {
    ramway::options o{.wait = args.wait(), .timeout = 10s};
    if (!args.yes("create")) return End::open(name, o).value();
    o.capacity = static_cast<std::uint64_t>(args.number("capacity", 65536));
    o.align = static_cast<std::uint32_t>(args.number("align", 16));
    return End::create(name, o).value();
}

ends::ends(const arguments &args, const std::string &to, const std::string &from) {
    if (args.has("listen") || args.has("connect")) {
        ramway::bus_options o{.wait = args.wait()};
        if (args.has("listen")) {
            o.capacity = static_cast<std::uint64_t>(args.number("capacity", 65536));
            o.align = static_cast<std::uint32_t>(args.number("align", 16));
        } else {
            o.timeout = 10s;
        }
        auto bus = args.has("listen") ? ramway::bus::listen(args.text("listen"), o, 10s)
                                      : ramway::bus::connect(args.text("connect"), o);
        std::tie(tx, rx) = std::move(bus).value().split();
        return;
    }
    if (!to.empty()) tx = ring<ramway::sender>(args, to);
    if (!from.empty()) rx = ring<ramway::receiver>(args, from);
    if (!tx && !rx) throw usage_error("--ring, --listen or --connect is needed");
}

static void attached(std::uint32_t epoch, std::uint32_t peer_epoch, std::uint64_t capacity) {
    say("attached pid=" + std::to_string(getpid()) + " epoch=" + std::to_string(epoch) + " peer_epoch=" +
        std::to_string(peer_epoch) + " capacity=" + std::to_string(capacity) + " max=" + std::to_string(longest(capacity)));
}

void ends::attached_sender() const { attached(tx.epoch(), tx.peer_epoch(), tx.capacity()); }
void ends::attached_receiver() const { attached(rx.epoch(), rx.peer_epoch(), rx.capacity()); }

void ends::close() {
    // What closing says on a bus whose peer is dead does not matter.
    if (tx) (void)tx.close();
    if (rx) (void)rx.close();
    say("closed");
}

std::uint64_t longest(std::uint64_t capacity) { return std::min<std::uint64_t>(capacity - 16, 2147483631u); }
const char *name_of(ramway::status status) { return ramway_status_name(static_cast<int>(status)); }
void say(const std::string &line) { std::cout << line << std::endl; }
void sleep_us(std::int64_t us) { std::this_thread::sleep_for(std::chrono::microseconds(us)); }

void linger(const arguments &args) {
    pollfd input{.fd = 0, .events = POLLIN, .revents = 0};
    if (args.has("linger")) poll(&input, 1, static_cast<int>(args.number("linger", 0)));
}

void kill_myself() {
    kill(getpid(), SIGKILL);
    std::abort();
}

std::int64_t ms_since(clock_type::time_point began) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(clock_type::now() - began).count();
}

int main(int argc, char **argv) {
    static const std::map<std::string, void (*)(const arguments &)> commands{
        {"produce", produce}, {"consume", consume}, {"die", die},     {"echo", echo},  {"ping", ping},
        {"read", read_back},  {"show", show},       {"flood", flood}, {"drain", drain},
        {"tensors", tensors}};
    try {
        const arguments args(argc, argv);
        if (args.has("cpu")) {
            cpu_set_t set;
            CPU_ZERO(&set);
            CPU_SET(static_cast<std::size_t>(args.number("cpu", 0)), &set);
            sched_setaffinity(0, sizeof set, &set);
        }
        const auto found = commands.find(args.command);
        if (found == commands.end()) throw usage_error("no such command: " + args.command);
        (args.command == "ping" && !args.yes("check", true) ? fast_ping : found->second)(args);
        return 0;
    } catch (const ramway::exception &e) {
        say(std::string("error name=") + name_of(e.code()) + " number=" + std::to_string(static_cast<int>(e.code())) +
            " text=" + e.what());
    } catch (const bad_message &e) {
        say("bad seq=" + std::to_string(e.seq) + " text=" + e.what());
    } catch (const std::logic_error &e) { // a number that is none
        std::cerr << "wrong flags: " << e.what() << '\n';
        return 2;
    } catch (const usage_error &e) {
        std::cerr << e.what() << '\n';
        return 2;
    }
    return 1;
}
