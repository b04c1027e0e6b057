// ramway.hpp within one process.
#include "ramway.hpp"

#include <algorithm>
#include <array>
#include <complex>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

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
using ramway::status;

static_assert(std::is_move_constructible_v<ramway::sender> && !std::is_copy_constructible_v<ramway::sender>);
static_assert(std::is_move_constructible_v<ramway::receiver> && !std::is_copy_constructible_v<ramway::receiver>);
static_assert(std::is_move_constructible_v<ramway::slot> && !std::is_copy_constructible_v<ramway::slot>);
static_assert(std::is_move_constructible_v<ramway::message> && !std::is_copy_constructible_v<ramway::message>);
static_assert(std::is_move_constructible_v<ramway::batch> && !std::is_copy_constructible_v<ramway::batch>);
static_assert(std::is_move_constructible_v<ramway::bus> && !std::is_copy_constructible_v<ramway::bus>);
static_assert(std::is_move_constructible_v<ramway::listener> && !std::is_copy_constructible_v<ramway::listener>);
static_assert(std::is_move_constructible_v<ramway::region> && !std::is_copy_constructible_v<ramway::region>);
// A literal has a zero at its end that is meant or not: not by accident.
static_assert(!std::is_constructible_v<ramway::bytes, const char (&)[6]>);
static_assert(std::input_iterator<ramway::receiver::message_range::iterator>);

struct point {
    double x, y;
};

static void rings() {
    auto [tx, rx] = ramway::pair(4096).value();
    CHECK(tx.capacity() == 4096 && rx.capacity() == 4096 && tx.align() == 16 && rx.align() == 16);
    CHECK(tx.max_message_len() == 4080 && tx.epoch() == 1 && rx.peer_epoch() == 1);
    CHECK(tx.is_peer_alive() && rx.is_peer_alive());
    CHECK(tx.last_tag().code() == status::empty);

    CHECK(rx.try_recv().code() == status::empty);
    CHECK(rx.recv_for(1ms).code() == status::timed_out);
    CHECK(rx.recv_for(-5ns).code() == status::invalid_argument);
    CHECK(tx.send(7, 42, "hello"sv));
    CHECK(tx.last_tag().value() == 42);
    {
        auto m = rx.recv();
        CHECK(m && m->text() == "hello" && m->type_id() == 7 && m->tag() == 42 && m->size() == 5);
        CHECK(rx.try_recv().code() == status::busy);
        auto moved = std::move(*m);
        CHECK(moved.text() == "hello");
    }
    CHECK(rx.len() == 0 && tx.len() == 0);

    const std::vector<int> numbers{1, 2, 3};
    CHECK(tx.try_send(1, numbers));
    CHECK(rx.recv()->size() == 12);
    CHECK(tx.send_value(2, point{1.5, 2.5}));
    {
        auto m = rx.recv().value();
        CHECK(m.as<point>().value().y == 2.5);
        CHECK(m.as<int>().code() == status::invalid_argument);
        m.release();
        m.release();
        CHECK(rx.try_recv().code() == status::empty);
    }

    {
        auto slot = tx.reserve(100).value();
        CHECK(slot.size() == 100 && tx.try_reserve(1).code() == status::busy);
    }  // aborted
    {
        auto slot = tx.reserve_for(1ms, 100).value();
        std::memcpy(slot.data().data(), "slot", 4);
        CHECK(std::move(slot).commit_unflushed(3, 9, 4));
    }
    CHECK(rx.try_recv().code() == status::empty);
    CHECK(tx.flush());
    CHECK(rx.recv()->text() == "slot");
    {
        auto slot = tx.reserve(4).value();
        CHECK(std::move(slot).commit(5).code() == status::invalid_argument);
    }  // still open after the failure, so aborted here
    CHECK(tx.try_reserve(4081).code() == status::too_large);
    CHECK(std::string_view(tx.try_reserve(4081).error().what()).find("4080") != std::string_view::npos);

    const std::array<std::string, 3> words{"one", "two", "three"};
    CHECK(tx.send_batch(5, words).value() == 3);
    {
        std::array<ramway::message_view, 2> room;
        auto batch = rx.recv_batch(room).value();
        CHECK(batch.size() == 2 && batch[0].text() == "one");
        std::string all;
        for (const auto &m : batch) {
            all += m.text();
        }
        CHECK(all == "onetwo");
    }
    std::array<std::byte, 4> small;
    CHECK(rx.recv_into(small).code() == status::too_large);
    std::array<std::byte, 8> large;
    const auto meta = rx.recv_into(large).value();
    CHECK(meta.len == 5 && meta.type_id == 5 && std::memcmp(large.data(), "three", 5) == 0);

    CHECK(tx.set_wait_policy(ramway::wait_policy::block) && rx.set_wait_policy(ramway::wait_policy::spin));
    CHECK(tx.set_interruptible(false) && rx.set_interruptible(false));

    for (int i = 0; i < 4; ++i) {
        CHECK(tx.send_value(0, i));
    }
    CHECK(tx.close());
    CHECK(!tx && tx.send(0, ""sv).code() == status::invalid_argument && tx.capacity() == 0);
    int sum = 0;
    auto messages = rx.messages();
    for (const auto &m : messages) {
        sum += m.as<int>().value();
    }
    CHECK(sum == 6 && messages.ended() == status::closed);

    // Leaving the loop early gives the message back.
    auto [tx2, rx2] = ramway::pair(4096).value();
    CHECK(tx2.send(0, "a"sv) && tx2.send(0, "b"sv));
    for (const auto &m : rx2.messages(1s)) {
        CHECK(m.text() == "a");
        break;
    }
    CHECK(rx2.recv()->text() == "b");
}

static void names_and_errors() {
    auto missing = ramway::receiver::open("cpp-ring");
    CHECK(missing.code() == status::not_found && !missing);
    CHECK(std::string_view(missing.error().what()).find("cpp-ring") != std::string_view::npos);
#ifdef __cpp_exceptions
    try {
        (void)std::move(missing).value();
        CHECK(false);
    } catch (const std::exception &e) {
        CHECK(std::string_view(e.what()).find("cpp-ring") != std::string_view::npos);
        CHECK(dynamic_cast<const ramway::exception &>(e).code() == status::not_found);
    }
#endif
    auto rx = ramway::receiver::create("cpp-ring", {.capacity = 8192, .align = 64, .wait = ramway::wait_policy::block}).value();
    CHECK(rx.align() == 64);
    CHECK(ramway::receiver::open("cpp-ring").code() == status::busy);
    auto tx = ramway::sender::open("cpp-ring", {.timeout = 1s}).value();
    std::thread sends([&] {
        for (int i = 0; i < 1000; ++i) {
            CHECK(tx.send_value(0, static_cast<std::uint64_t>(i), i));
        }
        CHECK(tx.abandon());
    });
    int next = 0;
    auto messages = rx.messages();
    for (const auto &m : messages) {
        CHECK(m.as<int>().value() == next++);
    }
    CHECK(next == 1000 && messages.ended() == status::peer_dead);
    sends.join();
    CHECK(ramway::sender::open("cpp-ring").value().last_tag().value() == 999);
    CHECK(rx.recv().code() == status::closed);
}

static void buses() {
    auto listener = ramway::listener::bind("cpp-bus", {.capacity = 4096, .align = 32}).value();
    CHECK(listener.fd() >= 0 && listener.path().ends_with("cpp-bus.sock"));
    CHECK(listener.try_accept().code() == status::empty && listener.accept(1ms).code() == status::timed_out);
    std::thread peer([] {
        auto bus = ramway::bus::connect("cpp-bus").value();
        auto messages = bus.receiver().messages();
        for (const auto &m : messages) {
            CHECK(bus.sender().send(m.type_id, m.tag, m.bytes()));
        }
        CHECK(messages.ended() == status::closed);
    });
    {
        auto bus = listener.accept().value();
        CHECK(bus.peer_pid() == static_cast<std::uint32_t>(getpid()) && bus.is_peer_alive());
        CHECK(bus.sender().align() == 32 && bus.sender() && bus.receiver());
        for (std::uint64_t i = 0; i < 100; ++i) {
            CHECK(bus.sender().send_value(1, i, i));
            CHECK(bus.receiver().recv().value().as<std::uint64_t>().value() == i);
        }
    }
    peer.join();
    CHECK(ramway::bus::connect("cpp-nobody", {.timeout = 1ms}).code() == status::not_found);
}

static void regions() {
    auto a = ramway::region::create("cpp-region", 64).value();
    auto b = ramway::region::open("cpp-region", {.read_only = true}).value();
    CHECK(a.len() == 64 && b.is_read_only() && a.data().size() == 64);
    CHECK(a.write_at(8, "bytes"sv));
    std::array<std::byte, 5> read;
    CHECK(b.read_at(8, read) && std::memcmp(read.data(), "bytes", 5) == 0);
    CHECK(b.write_at(8, "bytes"sv).code() == status::permission_denied);
    a.atomic<std::uint64_t>(16).value().store(5);
    CHECK(a.atomic<std::uint64_t>(16)->load() == 5);
    CHECK(a.atomic<std::uint64_t>(17).code() == status::invalid_argument);
    CHECK(a.atomic<std::uint64_t>(64).code() == status::invalid_argument);
    CHECK(b.atomic<std::uint32_t>(0).code() == status::permission_denied);
    CHECK(a.try_wait().code() == status::empty && a.wait(1ms).code() == status::timed_out);
    std::thread notifies([&] { CHECK(a.notify()); });
    CHECK(a.wait());
    notifies.join();
}

static void tensors() {
    for (const std::uint32_t align : {16u, 64u}) {
        auto rx = ramway::receiver::create("cpp-tensors", {.capacity = 4096, .align = align}).value();
        auto tx = ramway::sender::open("cpp-tensors").value();
        const std::vector<float> numbers{1, 2, 3, 4, 5, 6};
        CHECK(tx.send_tensor({2, 3}, 9, numbers));
        {
            auto m = rx.recv().value();
            CHECK(m.type_id() == RAMWAY_TYPE_ID_TENSOR && m.tag() == 9);
            auto t = m.tensor().value();
            CHECK(t.dtype() == ramway::element<float>::type && t.bytes().size() == 24);
            CHECK(t.shape().size() == 2 && t.shape()[0] == 2 && t.shape()[1] == 3);
            auto elements = t.as<float>().value();
            CHECK(std::ranges::equal(elements, numbers));
            CHECK(reinterpret_cast<std::uintptr_t>(elements.data()) % 64 == 0);
            CHECK(t.as<int>().code() == status::invalid_argument);
            CHECK(std::string_view(t.as<int>().error().what()).find("code 2 with 32 bits") != std::string_view::npos);
        }

        // In place, by type and by dtype; given up; without a dimension; of nothing.
        {
            auto slot = tx.reserve_tensor<std::complex<double>>({3}).value();
            CHECK(slot.data().size() == 3 && tx.try_reserve_tensor<int>({1}).code() == status::busy);
            slot.data()[2] = {1.5, -2.5};
            CHECK(std::move(slot).commit_unflushed());
        }
        CHECK(rx.try_recv().code() == status::empty && tx.flush());
        CHECK(rx.recv()->tensor()->as<std::complex<double>>().value()[2] == std::complex<double>(1.5, -2.5));
        { auto slot = tx.reserve_tensor<int>({100}).value(); }
        CHECK(rx.try_recv().code() == status::empty);
        const ramway::dtype bfloat16{RAMWAY_DTYPE_BFLOAT, 16};
        {
            auto slot = tx.reserve_tensor(bfloat16, {2, 2}, 1s).value();
            CHECK(slot.data().size() == 8);
            std::memset(slot.data().data(), 0x3f, 8);
            CHECK(std::move(slot).commit(4));
        }
        CHECK(rx.recv()->tensor()->dtype() == bfloat16);
        CHECK(tx.send_tensor(bfloat16, {}, 0, std::array<std::uint16_t, 1>{0x3f80}));
        {
            auto m = rx.recv().value();
            auto t = m.tensor().value();
            CHECK(t.shape().empty() && t.bytes().size() == 2 && t.as<std::uint16_t>().code() == status::invalid_argument);
        }
        const std::array<std::uint64_t, 3> none{4, 0, 2};
        CHECK(tx.try_send_tensor(none, 0, std::array<bool, 0>{}));
        {
            auto m = rx.recv().value();
            auto t = m.tensor().value();
            CHECK(t.as<bool>().value().empty() && std::ranges::equal(t.shape(), none));
        }

        CHECK(tx.send_tensor({7}, numbers).code() == status::invalid_argument);
        CHECK(tx.send_tensor(ramway::dtype{2, 8}, {24}, 0, numbers).code() == status::invalid_argument);
        CHECK(tx.send_tensor(std::vector<std::uint64_t>(33, 1), numbers).code() == status::invalid_argument);
        CHECK(tx.reserve_tensor<char>({1ull << 63}).code() == status::invalid_argument);
        CHECK(tx.reserve_tensor<char>({4096}).code() == status::too_large);
        CHECK(tx.send_tensor({3900}, std::vector<char>(3900)));
        CHECK(tx.try_send_tensor({3900}, 0, std::vector<char>(3900)).code() == status::full);
        CHECK(tx.send_tensor_for(1ms, {3900}, 0, std::vector<char>(3900)).code() == status::timed_out);
        CHECK(rx.recv()->tensor()->as<char>().value().size() == 3900);
        CHECK(tx.send(1, "no tensor"sv));
        CHECK(rx.recv()->tensor().code() == status::invalid_argument);

        // In a batch, and of the messages one after another.
        CHECK(tx.send_tensor({6}, numbers) && tx.send_tensor({6}, numbers));
        {
            std::array<ramway::message_view, 1> room;
            auto batch = rx.recv_batch(room).value();
            CHECK(batch[0].tensor()->as<float>().value()[5] == 6);
        }
        for (const auto &m : rx.messages(1s)) {
            CHECK(m.tensor()->as<float>().value()[0] == 1);
            break;
        }
        CHECK(tx.close() && rx.recv().code() == status::closed);
    }
    static_assert(ramway::element<std::uint8_t>::type == ramway::dtype{1, 8});
    static_assert(ramway::element<long long>::type == ramway::dtype{0, 64});
    static_assert(!ramway::tensor_element<point> && !ramway::tensor_element<std::byte>);
}

// A scope that an exception ends has not sent everything.
static void endings() {
    const std::string name = "cpp-endings";
    auto rx = ramway::receiver::create(name).value();
    CHECK(rx.name() == name && rx.wait_for_peer(1ms).code() == status::timed_out);
#ifdef __cpp_exceptions
    try {
        auto tx = ramway::sender::open(name).value();
        CHECK(rx.wait_for_peer().value() == 1 && tx.send(1, "half"sv));
        throw 1;
    } catch (int) {
    }
    CHECK(rx.recv().value().text() == "half");
    CHECK(rx.recv().code() == status::peer_dead);
    // One that is made and goes while an exception is on its way closes as ever.
    struct report {
        std::string name;
        ~report() { CHECK(ramway::sender::open(name).value().send(1, "whole"sv)); }
    };
    try {
        report r{name};
        throw 1;
    } catch (int) {
    }
    CHECK(rx.recv().value().text() == "whole");
    CHECK(rx.recv().code() == status::closed);
#endif
    CHECK(rx.close() && ramway::unlink(name).code() == status::not_found);

    const int fd = ramway::unnamed({.capacity = 8192}).value();
    auto tx = ramway::sender::from_fd(fd).value();
    auto other = ramway::receiver::from_fd(fd).value();
    ::close(fd);
    other.wake();
    CHECK(other.recv().code() == status::interrupted && other.recv_for(1ms).code() == status::timed_out);
    CHECK(other.recv_for(-1ms).code() == status::invalid_argument && other.recv_for(0ns).code() == status::empty);
    const std::array<ramway::bytes, 2> pieces{"ab"sv, "c"sv};
    CHECK(tx.send_vectored(4, 5, pieces));
    CHECK(other.wait_for_peer(0ns).value() == 1 && other.recv().value().text() == "abc");
    CHECK(tx.send_batch(1, 8, std::vector{"x"sv, "y"sv}, 1ms).value() == 2 && tx.last_tag().value() == 8);
    CHECK(tx.send_batch(1, 8, std::vector<std::vector<char>>(9, std::vector<char>(2000)), 5ms).value() == 4);
    CHECK(tx.send_batch(1, 8, std::vector<std::vector<char>>(9, std::vector<char>(2000)), 5ms).code() == status::timed_out);

    auto kept = ramway::sender::create("cpp-listed", {.persistent = true}).value();
    auto all = ramway::ls().value();
    auto found = std::find_if(all.begin(), all.end(), [](const auto &s) { return s.name == "cpp-listed"; });
    CHECK(found != all.end() && found->in_use && found->persistent && found->kind == RAMWAY_KIND_RING);
    CHECK(ramway::unlink("cpp-listed").code() == status::busy && kept.close());
    auto done = ramway::clean({}, true, true).value();
    CHECK(std::any_of(done.begin(), done.end(), [](const auto &d) {
        return d.name == "cpp-listed" && d.outcome == RAMWAY_CLEAN_REMOVED;
    }));
    CHECK(ramway::unlink("cpp-listed"));
}

int main() {
    rings();
    endings();
    tensors();
    names_and_errors();
    buses();
    regions();
}
