// C++'s agent: ../README.md says what each command and flag means.
#pragma once

#include <ramway.hpp>

#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

using clock_type = std::chrono::steady_clock;

// The flags, by name.
class arguments {
  public:
    arguments(int argc, char **argv);

    std::string command;
    bool has(const std::string &flag) const { return flags_.contains(flag); }
    bool yes(const std::string &flag, bool by_default = false) const { return has(flag) ? text(flag) == "yes" : by_default; }
    std::string text(const std::string &flag, const std::string &by_default = "") const;
    std::int64_t number(const std::string &flag, std::int64_t by_default) const;
    bool producer() const { return text("role") == "producer"; }
    // The longest single wait.
    std::chrono::nanoseconds limit() const;
    // The time-out of one call: with --poll that, else the longest single wait.
    std::chrono::nanoseconds call_limit() const { return has("poll") ? std::chrono::microseconds(number("poll", 0)) : limit(); }
    ramway::wait_policy wait() const;

  private:
    std::map<std::string, std::string> flags_;
};

struct usage_error : std::runtime_error {
    using std::runtime_error::runtime_error;
};
// A message did not arrive as it was sent.
struct bad_message : std::runtime_error {
    bad_message(std::uint64_t seq, const std::string &what) : std::runtime_error(what), seq(seq) {}
    std::uint64_t seq;
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
    made operator[](std::uint64_t seq) const { return of_length(seq, length(seq)); }
    made of_length(std::uint64_t seq, std::uint64_t len) const;
    void check(std::uint64_t seq, std::uint32_t type_id, std::uint64_t tag, std::span<const std::byte> data) const;

  private:
    std::uint64_t length(std::uint64_t seq) const;
    std::string sizes_;
    std::uint64_t fixed_ = 0, max_;
    std::vector<std::byte> pattern_; // bytes 0, 1, ..., 255, 0, ...: every payload is a piece of it
};

// What the command needs of rings, or both halves of a bus.
struct ends {
    ramway::sender tx;
    ramway::receiver rx;

    // On rings `to` names the one to send to and `from` the one to receive from.
    ends(const arguments &args, const std::string &to, const std::string &from);
    void attached_sender() const;
    void attached_receiver() const;
    void close();
};

std::uint64_t longest(std::uint64_t capacity);
const char *name_of(ramway::status status);
inline bool is_ending(ramway::status s) { return s == ramway::status::closed || s == ramway::status::peer_dead; }
// One event: a whole line, written at once.
void say(const std::string &line);
void linger(const arguments &args);
void sleep_us(std::int64_t us);
[[noreturn]] void kill_myself();
std::int64_t ms_since(clock_type::time_point began);

// Times of groups of round trips, all but the first tenth.
class timer {
  public:
    timer(std::int64_t count, std::int64_t group) : count_(count), group_(group), last_(clock_type::now()) {
        ns_.reserve(static_cast<std::size_t>(count / group + 1));
    }
    void trip(std::int64_t seq) {
        if ((seq + 1) % group_ != 0) return;
        const auto now = clock_type::now();
        if (seq >= count_ / 10) ns_.push_back(std::chrono::duration<double, std::nano>(now - last_).count() / static_cast<double>(group_));
        last_ = now;
    }
    void report();

  private:
    std::int64_t count_, group_;
    clock_type::time_point last_;
    std::vector<double> ns_;
};

void produce(const arguments &args);
void consume(const arguments &args);
void die(const arguments &args);
void echo(const arguments &args);
void ping(const arguments &args);
void read_back(const arguments &args);
void show(const arguments &args);
void tensors(const arguments &args);
void flood(const arguments &args);
void drain(const arguments &args);
void fast_ping(const arguments &args);
