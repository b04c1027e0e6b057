// Topics of ramway.hpp: within one process, and with one that is killed.
#include "ramway.hpp"

#include <array>
#include <chrono>
#include <complex>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(...)                                                                     \
    do {                                                                               \
        if (!(__VA_ARGS__)) {                                                          \
            std::cerr << __FILE__ << ':' << __LINE__ << ": " #__VA_ARGS__ "\n";        \
            std::exit(1);                                                              \
        }                                                                              \
    } while (0)

using namespace std::chrono_literals;
using namespace std::string_view_literals;
using ramway::policy;
using ramway::publisher;
using ramway::status;
using ramway::subscriber;

static_assert(std::is_move_constructible_v<publisher> && !std::is_copy_constructible_v<publisher>);
static_assert(std::is_move_constructible_v<subscriber> && !std::is_copy_constructible_v<subscriber>);
static_assert(!std::is_copy_constructible_v<ramway::topic_message> && !std::is_copy_constructible_v<ramway::topic_slot>);
static_assert(std::input_iterator<subscriber::message_range::iterator>);
// A ring's message has no number.
template <class M>
concept numbered = requires(M m) { m.seq(); };
static_assert(numbered<ramway::topic_message> && !numbered<ramway::message>);

constexpr auto name = "topic-cpp";

struct pose {
    double x, y;
};

static void messages() {
    auto p = publisher::create(name, {.capacity = 4096, .slots = 8}).value();
    auto s = subscriber::open(name).value();
    CHECK(p.capacity() == 4096 && p.align() == 32 && p.max_message_len() == 2016 && s.capacity() == 4096);
    CHECK(p.seq() == 0 && p.last_tag().code() == status::empty && s.policy() == policy::reliable && s.label().empty());
    CHECK(p.name() == name && s.name() == name && p.is_peer_alive() && s.is_peer_alive());
    CHECK(p.wait_for_subscribers(1));
    CHECK(p.wait_for_subscribers(2, 1ms).code() == status::timed_out);
    CHECK(p.wait_for_subscribers(9).code() == status::invalid_argument);
    CHECK(s.try_recv().code() == status::empty && s.recv_for(1ms).code() == status::timed_out);

    CHECK(p.send(7, 42, "hello"sv));
    CHECK(p.seq() == 1 && p.last_tag().value() == 42 && s.lag().messages == 1 && s.lag().bytes == 64);
    {
        auto m = s.recv().value();
        CHECK(m.text() == "hello" && m.type_id() == 7 && m.tag() == 42 && m.size() == 5);
        CHECK(m.seq() == 1 && m.time() == 0 && m.lost() == 0);
        CHECK(s.try_recv().code() == status::busy);
        auto moved = std::move(m);
        CHECK(moved.text() == "hello");
    }
    CHECK(p.skip_seq(3));
    CHECK(p.send_value(1, pose{1, 2}));
    {
        auto m = s.recv().value();
        CHECK(m.as<pose>().value().y == 2 && m.as<int>().code() == status::invalid_argument);
        CHECK(m.seq() == 5 && m.lost() == 3 && s.lost() == 3);
    }
    {
        auto slot = p.reserve(100).value();
        std::memcpy(slot.data().data(), "in place", 8);
        CHECK(p.try_reserve(1).code() == status::busy);
        CHECK(std::move(slot).commit_unflushed(3, 4, 8));
    }
    {
        auto dropped = p.reserve(10).value();
    }
    CHECK(s.try_recv().code() == status::empty);
    CHECK(p.flush());
    CHECK(s.recv().value().text() == "in place");
    CHECK(p.send_batch(2, std::array{"a"sv, "b"sv, "c"sv}).value() == 3);
    std::array<ramway::topic_view, 8> room;
    {
        auto batch = s.recv_batch(room).value();
        std::string all;
        std::uint64_t seq = 7;
        for (const auto &m : batch) {
            all += m.text();
            CHECK(m.seq == seq++ && m.lost == 0 && m.type_id() == 2 && m.tag() == 0);
        }
        CHECK(all == "abc" && batch.size() == 3);
    }
    CHECK(p.send_tensor({2, 2}, std::vector<float>{1, 2, 3, 4}));
    {
        auto m = s.recv().value();
        auto tensor = m.tensor().value();
        CHECK(tensor.shape().size() == 2 && tensor.as<float>().value()[3] == 4);
    }
    {
        auto slot = p.reserve_tensor<std::complex<double>>({2}).value();
        slot.data()[1] = {1, 2};
        CHECK(std::move(slot).commit(5));
        auto m = s.recv().value();
        CHECK(m.tensor().value().as<std::complex<double>>().value()[1].imag() == 2 && m.tag() == 5);
    }
    std::array<std::byte, 4> small;
    CHECK(p.send(1, "12345"sv));
    CHECK(s.recv_into(small).code() == status::too_large);
    std::array<std::byte, 8> large;
    auto meta = s.recv_into(large).value();
    CHECK(meta.len == 5 && meta.seq == 12 && meta.type_id == 1 && meta.lost == 0);
    CHECK(p.send(1, "x"sv) && p.send(1, "y"sv) && p.close());
    std::string all;
    auto range = s.messages();
    for (const auto &m : range) {
        all += m.text();
        CHECK(m.seq >= 13);
    }
    CHECK(all == "xy" && range.ended() == status::closed);
}

static void policies() {
    auto p = publisher::create(name, {.capacity = 4096}).value();
    auto lossy = subscriber::open(name, {.policy = policy::lossy, .label = "viewer"}).value();
    auto latest = subscriber::open(name, {.policy = policy::latest}).value();
    CHECK(lossy.label() == "viewer" && lossy.policy() == policy::lossy && latest.policy() == policy::latest);
    CHECK(latest.latest<pose>().code() == status::empty);
    for (int i = 1; i <= 1000; ++i) {
        CHECK(p.send_value(1, pose{double(i), 0}));
    }
    std::uint64_t got = 0, lost = 0;
    while (auto m = lossy.try_recv()) {
        lost += m->lost();
        ++got;
        CHECK(m->as<pose>().value().x == double(m->seq()) && m->seq() == got + lost);
    }
    CHECK(got > 0 && lost > 0 && got + lost == 1000 && lossy.lost() == lost);
    CHECK(latest.latest<pose>().value().x == 1000 && latest.latest<pose>().value().x == 1000);
    CHECK(latest.latest<float>().code() == status::invalid_argument);
    CHECK(latest.wait_newer<pose>(1ms).code() == status::timed_out);
    CHECK(lossy.wait_newer<pose>(1ms).code() == status::unsupported);
    CHECK(p.send_value(1, pose{5, 6}) && p.send_value(1, pose{7, 8}));
    std::array<std::byte, 64> buffer;
    auto newer = latest.wait_newer(buffer).value();
    CHECK(newer.seq == 1002 && newer.len == sizeof(pose));
    CHECK(latest.latest(buffer).value().seq == 1002);
    CHECK(lossy.skip_to_newest().value() == 1 && lossy.recv().value().seq() == 1002);
    CHECK(latest.skip_to_newest().code() == status::unsupported);
    auto seen = p.subscribers().value();
    CHECK(seen.size() == 2);
    for (const auto &one : seen) {
        CHECK(one.alive && !one.lag && !one.blocks_for && !one.ejected && !one.durable && one.epoch >= 1);
        CHECK(one.policy == policy::latest || (one.label == "viewer" && one.lost == lost));
    }
    auto tail = subscriber::open(name, {.policy = policy::lossy, .start = ramway::history(2)}).value();
    CHECK(tail.recv().value().seq() == 1001);
    auto after = subscriber::open(name, {.start = ramway::after_seq(1001)}).value();
    CHECK(after.recv().value().seq() == 1002);
    auto oldest = subscriber::open(name, {.start = ramway::from_oldest}).value();
    CHECK(oldest.recv().value().seq() < 1002);
    auto now = subscriber::open(name, {.start = ramway::from_now}).value();
    CHECK(now.try_recv().code() == status::empty);
}

static void refused() {
    CHECK(publisher::open(name).code() == status::not_found);
    auto wrong = [](const ramway::topic_options &o) {
        CHECK(publisher::create(name, o).code() == status::invalid_argument);
    };
    wrong({.policy = policy::latest});
    wrong({.start = ramway::from_now});
    wrong({.label = "x"});
    wrong({.eject_after = -1ns});
    wrong({.eject_after = ramway::forever});
    CHECK(subscriber::create(name, {.timestamps = true}).code() == status::invalid_argument);
    CHECK(subscriber::create(name, {.durable = true}).code() == status::invalid_argument);
    CHECK(subscriber::create(name, {.eject_after = 1s}).code() == status::invalid_argument);
    auto p = publisher::create(name, {.lossy_only = true, .timestamps = true}).value();
    CHECK(subscriber::open(name).code() == status::unsupported);
    auto s = subscriber::open(name, {.read_only = true, .policy = policy::lossy}).value();
    CHECK(p.send(1, "x"sv));
    CHECK(s.recv().value().time() > 1'600'000'000'000'000'000);
    subscriber none;
    CHECK(none.try_recv().code() == status::invalid_argument && none.lag().bytes == 0 && none.label().empty());
    CHECK(publisher().send(1, "x"sv).code() == status::invalid_argument);
    // A ring's handle under a topic's name answers, and is nobody's crash.
    ramway_sender *tx = nullptr;
    ramway_receiver *rx = nullptr;
    CHECK(ramway_ring_pair(4096, &tx, &rx) == RAMWAY_OK);
    auto sends = publisher::adopt(tx);
    auto receives = subscriber::adopt(rx);
    CHECK(sends.send(1, "x"sv) && sends.seq() == 0 && sends.skip_seq(1).code() == status::invalid_argument);
    CHECK(receives.try_recv().code() == status::invalid_argument && receives.lag().bytes == 0);
    CHECK(receives.latest<int>().code() == status::invalid_argument);
}

static void durable_and_ejected() {
    {
        auto p = publisher::create(name, {.capacity = 4096}).value();
        auto s = subscriber::open(name, {.durable = true, .label = "log"}).value();
        CHECK(subscriber::open(name, {.label = "log"}).code() == status::busy);
        CHECK(p.send(1, "1"sv) && p.send(1, "2"sv) && s.recv().value().text() == "1");
        CHECK(s.close());
        auto seen = p.subscribers().value();
        CHECK(seen.size() == 1 && seen[0].durable && !seen[0].alive && seen[0].lag->messages == 1);
        auto next = subscriber::open(name, {.durable = true, .label = "log"}).value();
        CHECK(next.recv().value().text() == "2");
        CHECK(next.unsubscribe() && p.subscribers().value().empty());
    }
    auto p = publisher::create(name, {.capacity = 4096, .eject_after = 20ms}).value();
    auto s = subscriber::open(name).value();
    for (int i = 1; i <= 200; ++i) {
        CHECK(p.send_value(1, i));
    }
    auto lagged = s.recv();
    CHECK(lagged.code() == status::lagged && lagged.error().lost() > 0);
    const auto lost = lagged.error().lost();
    CHECK(std::string_view(lagged.error().what()).find("ejected") != std::string_view::npos);
    CHECK(s.try_recv().value().seq() == lost + 1 && s.lost() == lost);
}

static void unwinding_and_threads() {
    auto s = subscriber::create(name, {.capacity = 4096}).value();
    try {
        auto p = publisher::open(name).value();
        CHECK(p.send(1, "half"sv));
        throw std::runtime_error("no more");
    } catch (const std::runtime_error &) {
    }
    CHECK(s.recv().value().text() == "half");
    CHECK(s.recv().code() == status::peer_dead);
    std::jthread other([&] {
        std::this_thread::sleep_for(20ms);
        s.wake();
    });
    CHECK(s.wait_for_peer().code() == status::interrupted);
}

static void killed() {
    auto s = subscriber::create(name, {.capacity = 4096}).value();
    const pid_t pid = fork();
    if (pid == 0) {
        auto p = publisher::open(name).value();
        for (int i = 1; i <= 20; ++i) {
            CHECK(p.send_value(1, i));
        }
        for (;;) {
            pause();
        }
    }
    for (int i = 1; i <= 20; ++i) {
        CHECK(s.recv_for(60s).value().as<int>().value() == i);
    }
    CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, nullptr, 0) == pid);
    CHECK(s.recv().code() == status::peer_dead);
    auto p = publisher::open(name).value();
    CHECK(p.seq() == 20 && p.send(1, "on"sv) && s.recv().value().seq() == 21);
}

int main() {
    alarm(120);
    messages();
    policies();
    refused();
    durable_and_ejected();
    unwinding_and_threads();
    killed();
}
