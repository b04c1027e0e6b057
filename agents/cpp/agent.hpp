// C++'s agent: ../README.md has the protocol.
#pragma once

#include <ramway.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

using clock_type = std::chrono::steady_clock;

// A command that is not understood.
struct refused : std::runtime_error {
    using std::runtime_error::runtime_error;
};
// A message did not arrive as it was sent.
struct bad_message : std::runtime_error {
    bad_message(std::uint64_t seq, const std::string &what) : std::runtime_error(what), seq(seq) {}
    std::uint64_t seq;
};

// A command, `word key=value key=value ...`. What it does not take out of it is refused.
class line {
  public:
    // The next one of standard input; nothing when that ends.
    static std::optional<line> next();

    std::string word;
    std::string text(const std::string &key, const std::string &otherwise = "");
    std::int64_t number(const std::string &key, std::optional<std::int64_t> otherwise = {});
    std::uint64_t unsigned_number(const std::string &key) { return std::stoull(text(key)); }
    bool yes(const std::string &key) { return text(key) == "yes"; }
    ramway::wait_policy wait();
    // Nothing else was said.
    void end() const;

  private:
    std::map<std::string, std::string> fields_;
};

// How long a wait may last: all of it, and one call.
struct limits {
    std::chrono::nanoseconds whole, call;
    bool polls;

    explicit limits(line &line);
    // A call, with `poll` again and again. A time-out of 0 says full and empty, and at the end of the wait it is timed_out
    // whatever the last call said.
    template <class Call>
    ramway::status wait(Call call) const {
        const auto began = clock_type::now();
        for (;;) {
            const ramway::status s = call();
            if (!polls || (s != ramway::status::timed_out && s != ramway::status::full && s != ramway::status::empty)) return s;
            if (whole != ramway::forever && clock_type::now() - began >= whole) return ramway::status::timed_out;
        }
    }
};

std::uint32_t crc32(std::span<const std::byte> bytes);

struct made {
    std::uint32_t type_id;
    std::uint64_t tag;
    std::span<const std::byte> data;
};

// Every message of a ring whose longest has `max` bytes.
class messages {
  public:
    messages(const std::string &sizes, std::uint64_t max);
    made operator[](std::uint64_t seq) const;
    void check(std::uint64_t seq, std::uint32_t type_id, std::uint64_t tag, std::span<const std::byte> data) const;

  private:
    std::uint64_t length(std::uint64_t seq) const;
    std::string sizes_;
    std::uint64_t fixed_ = 0, max_;
    std::vector<std::byte> pattern_; // bytes 0, 1, ..., 255, 0, ...: every payload is a piece of it
};

// Both halves of a bus, what a role needs of rings, or one side of a topic.
struct ends {
    ramway::sender tx;
    ramway::receiver rx;
    ramway::publisher pub;
    ramway::subscriber sub;
    // A server or a client of RPC; then none of the others is used.
    std::shared_ptr<struct serving> server;
    std::shared_ptr<struct calling> client;

    bool sends() const { return tx || pub; }
    bool receives() const { return rx || sub; }
};

// Whether it is a topic's side: its messages have numbers.
template <class End>
constexpr bool of_topic = std::is_same_v<End, ramway::publisher> || std::is_same_v<End, ramway::subscriber>;

constexpr auto open_timeout = std::chrono::seconds(10); // how long to wait for a name, a role or the other side

// The longest message of a ring, or of a topic, with this capacity.
std::uint64_t longest(std::uint64_t capacity, bool topic);
// One event: a whole line, written at once.
template <class... T>
void say(const T &...parts) {
    (std::cout << ... << parts) << std::endl;
}
std::string named(ramway::status status);
std::int64_t ms_since(clock_type::time_point began);
template <class Receiver>
auto receive(Receiver &rx, std::chrono::nanoseconds limit) {
    return limit == ramway::forever ? rx.recv() : rx.recv_for(limit);
}

void produce(ends &e, line &line);
void consume(ends &e, line &line);
void echo(ends &e, line &line);
void ping(ends &e, line &line);
void last(ends &e, line &line);
void take(ends &e, line &line);
void region(ends &e, line &line);
void write(ends &e, line &line);
void hold(ends &e, line &line);
void tensor(ends &e, line &line);
void measure(ends &e, line &line);
// Of a message that was taken, with this tag: false where it is no tensor.
bool say_tensor(const ramway::result<ramway::tensor> &tensor, std::uint64_t tag);
// `open topic=`: one side, without `attached`.
void open_topic(ends &e, line &line, const std::string &name, bool consumer);

// RPC. The method that is registered by name:
inline const std::string agent_sum = "Agent.Sum";
// The bytes that begin with this one.
std::vector<std::byte> counted(std::uint64_t first, std::size_t len);
void open_server(ends &e, line &line, const std::string &name);
void serve_command(serving &server, line &line);
void close_server(serving &server);
void open_client(ends &e, line &line, const std::string &name);
void call_command(calling &client, line &line);
