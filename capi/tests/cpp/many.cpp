// Select, inbox and outbox of ramway.hpp: within one process, and with others that are killed.
#include "ramway.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <type_traits>
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
using ramway::status;

static_assert(std::is_move_constructible_v<ramway::select> && !std::is_copy_constructible_v<ramway::select>);
static_assert(std::is_move_constructible_v<ramway::inbox> && !std::is_copy_constructible_v<ramway::inbox>);
static_assert(std::is_move_constructible_v<ramway::outbox> && !std::is_copy_constructible_v<ramway::outbox>);
static_assert(std::is_move_constructible_v<ramway::incoming> && !std::is_copy_constructible_v<ramway::incoming>);
// A sender has no readiness without a size, and a number is no source by itself.
static_assert(!std::is_convertible_v<ramway::sender &, ramway::source> && !std::is_convertible_v<int, ramway::source>);
static_assert(!std::is_convertible_v<ramway::receiver, ramway::source> && !std::is_convertible_v<ramway::region, ramway::source>);
static_assert(!std::is_convertible_v<ramway::listener, ramway::source>);

template <class F>
static pid_t child(F life) {
    const pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        alarm(120);
        life();
        // Not exit: the parent's handles, which this copy has no pointer to any more, are no leak.
        _exit(0);
    }
    return pid;
}

static void ends_well(pid_t pid) {
    int code = 0;
    CHECK(waitpid(pid, &code, 0) == pid && code == 0);
}

static void is_killed(pid_t pid) { CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, nullptr, 0) == pid); }

static void select_of_every_kind() {
    auto one = ramway::pair(4096).value(), two = ramway::pair(4096).value();
    auto &tx = one.first, &full = two.first;
    auto &rx = one.second, &other = two.second;
    auto pub = ramway::publisher::create("many-topic", {.capacity = 4096}).value();
    auto sub = ramway::subscriber::open("many-topic").value();
    auto region = ramway::region::create("many-region", 8).value();
    auto listener = ramway::listener::bind("many-listener").value();
    std::array<int, 2> fds{};
    CHECK(pipe(fds.data()) == 0);
    while (full.try_send(1, "full"sv)) {
    }
    ramway::select made;
    ramway::select select = std::move(made);
    CHECK(made.wait({rx}).code() == status::invalid_argument);
    auto first = [&](std::chrono::nanoseconds timeout) {
        return select.wait({rx, sub, region, listener, ramway::readable(fds[0]), ramway::room(full, 100)}, timeout);
    };
    CHECK(first(0ns).code() == status::empty && first(5ms).code() == status::timed_out);
    CHECK(first(-5ms).code() == status::invalid_argument);
    CHECK(tx.send(1, "x"sv));
    auto ready = first(10s);
    CHECK(ready && ready->size() == 1 && ready->front() == 0);
    CHECK(select.wait({rx, rx}).code() == status::busy);
    {
        auto held = rx.try_recv().value();
        CHECK(first(0ns).code() == status::busy);
    }
    CHECK(pub.send(1, "y"sv));
    CHECK(first(10s).value().front() == 1);
    CHECK(sub.try_recv());
    CHECK(region.notify());
    CHECK(first(10s).value().front() == 2);
    CHECK(region.try_wait());
    CHECK(write(fds[1], "z", 1) == 1);
    CHECK(first(10s).value().front() == 4);
    char byte = 0;
    CHECK(read(fds[0], &byte, 1) == 1);
    while (other.try_recv()) {
    }
    CHECK(first(10s).value().front() == 5);
    CHECK(select.wait({ramway::room(pub, 10)}, 0ns));
    const std::vector<ramway::source> many{rx, sub};
    CHECK(select.wait(many, 1ms).code() == status::timed_out);
    CHECK(select.wait(std::span<const ramway::source>{}).code() == status::invalid_argument);
    CHECK(select.set_wait_policy(ramway::wait_policy::block));
    const std::jthread waker([&] {
        std::this_thread::sleep_for(20ms);
        select.wake();
    });
    CHECK(select.wait(many).code() == status::interrupted);
    close(fds[0]);
    close(fds[1]);
}

// The idiom of the guide: whoever is served last is last, and an end is an answer like any other.
static void two_sources_of_another_process() {
    auto pictures = ramway::subscriber::create("many-pictures").value();
    auto commands = ramway::receiver::create("many-commands").value();
    const auto pid = child([] {
        auto camera = ramway::publisher::open("many-pictures").value();
        auto operation = ramway::sender::open("many-commands").value();
        for (std::uint64_t k = 1; k <= 1000; ++k) {
            camera.send(1, k, "a picture"sv).value();
            operation.send(1, k, "a command"sv).value();
        }
        // Until it is killed: a death is an answer too.
        for (;;) {
            pause();
        }
    });
    ramway::select select;
    std::array<std::uint64_t, 2> counts{};
    auto take = [&](std::size_t index) -> status {
        const auto tag = [](auto &&message) { return message ? message->tag() : 0; };
        const std::uint64_t got = index == 0 ? tag(pictures.try_recv()) : tag(commands.try_recv());
        if (got == 0) {
            return index == 0 ? pictures.try_recv().code() : commands.try_recv().code();
        }
        CHECK(got == ++counts[index]);
        return status::ok;
    };
    while (counts[0] + counts[1] < 2000) {
        for (const std::size_t index : select.wait({pictures, commands}).value()) {
            CHECK(take(index) == status::ok);
        }
    }
    is_killed(pid);
    std::set<std::size_t> dead;
    while (dead.size() < 2) {
        for (const std::size_t index : select.wait({pictures, commands}).value()) {
            CHECK(take(index) == status::peer_dead);
            dead.insert(index);
        }
    }
}

static void inbox() {
    auto inbox = ramway::inbox::bind("many-inbox", {.capacity = 4096, .max_peers = 4}).value();
    CHECK(ramway::inbox::bind("many-inbox").code() == status::already_exists);
    CHECK(ramway::inbox::bind("", {.align = 3}).code() == status::invalid_argument);
    CHECK(inbox.try_recv().code() == status::empty && inbox.recv_for(2ms).code() == status::timed_out);
    CHECK(inbox.peers().value().empty() && access(inbox.path().c_str(), F_OK) == 0);
    constexpr std::uint64_t count = 5000;
    auto produce = [](bool stays) {
        auto bus = ramway::bus::connect("many-inbox").value();
        for (std::uint64_t k = 1; k <= count; ++k) {
            bus.sender().send(7, k, "reading"sv).value();
        }
        while (stays) {
            pause();
        }
    };
    const std::array pids{child([&] { produce(false); }), child([&] { produce(false); }), child([&] { produce(true); })};
    std::map<std::uint32_t, std::uint64_t> last;
    std::map<std::uint32_t, ramway::left> gone;
    while (gone.size() < pids.size()) {
        auto in = inbox.recv().value();
        const auto pid = in.peer().pid;
        if (const auto how = in.left()) {
            CHECK(in.size() == 0 && last[pid] == count);
            gone[pid] = *how;
            continue;
        }
        CHECK(in.text() == "reading" && in.data().size() == 7 && in.type_id() == 7 && in.tag() == ++last[pid]);
        if (in.tag() == 1) {
            CHECK(inbox.try_recv().code() == status::busy && inbox.close().code() == status::busy);
            const auto peers = inbox.peers().value();
            CHECK(std::any_of(peers.begin(), peers.end(), [&](const ramway::peer &peer) {
                return peer.id == in.peer().id && peer.pid == pid && peer.uid == geteuid();
            }));
            auto moved = std::move(in);
            CHECK(moved.text() == "reading" && moved.as<int>().code() == status::invalid_argument);
        }
        if (static_cast<pid_t>(pid) == pids[2] && last[pid] == count) {
            in.release();
            is_killed(pids[2]);
        }
    }
    for (std::size_t i = 0; i < pids.size(); ++i) {
        CHECK(gone[static_cast<std::uint32_t>(pids[i])] == (i == 2 ? ramway::left::died : ramway::left::closed));
    }
    ends_well(pids[0]);
    ends_well(pids[1]);
    {
        const std::jthread waker([&] {
            std::this_thread::sleep_for(20ms);
            inbox.wake();
        });
        CHECK(inbox.recv().code() == status::interrupted);
    }
    CHECK(inbox.close());
    CHECK(inbox.path().empty() && inbox.recv().code() == status::closed);
}

static void outbox() {
    auto outbox = ramway::outbox::bind("many-outbox", {.prefetch = 2, .max_deliveries = 2, .copies = true}).value();
    CHECK(outbox.try_send(1, "task"sv).code() == status::full);
    CHECK(outbox.send_for(2ms, 1, "task"sv).code() == status::timed_out);
    CHECK(outbox.take_undelivered().code() == status::empty && outbox.outstanding() == 0);
    CHECK(outbox.workers().value().empty() && access(outbox.path().c_str(), F_OK) == 0);
    CHECK(outbox.drain());
    auto work = [] {
        auto bus = ramway::bus::connect("many-outbox").value();
        auto tasks = bus.receiver().messages();
        for (const auto &task : tasks) {
            CHECK(task.text() == "task");
        }
        CHECK(tasks.ended() == status::closed || tasks.ended() == status::peer_dead);
    };
    auto keep = [] {
        auto bus = ramway::bus::connect("many-outbox").value();
        const auto task = bus.receiver().recv().value();
        for (;;) {
            pause();
        }
    };
    // Two keepers are killed with the first task: nobody else gets it.
    for (int round = 0; round < 2; ++round) {
        const auto pid = child(keep);
        if (round == 0) {
            CHECK(outbox.send(5, 42, "bad"sv));
        }
        while (outbox.workers().value().empty() || outbox.workers().value()[0].messages != 1 ||
               outbox.workers().value()[0].peer.pid != static_cast<std::uint32_t>(pid)) {
            CHECK(outbox.drain(5ms).code() == status::timed_out);
        }
        CHECK(outbox.outstanding() == 1);
        is_killed(pid);
    }
    CHECK(outbox.drain(60s));
    const auto bad = outbox.take_undelivered().value();
    CHECK(bad.type_id == 5 && bad.tag == 42 && bad.deliveries == 2 && bad.data.size() == 3);
    CHECK(std::memcmp(bad.data.data(), "bad", 3) == 0);

    const std::array pids{child(work), child(work)};
    // Else one of them may do everything before the other connects.
    while (outbox.workers().value().size() != pids.size()) {
        CHECK(outbox.drain(60s));
        std::this_thread::sleep_for(1ms);
    }
    for (int k = 0; k < 1000; ++k) {
        CHECK(outbox.send(5, "task"sv));
    }
    CHECK(outbox.drain(60s) && outbox.outstanding() == 0);
    {
        auto moved = std::move(outbox);
        CHECK(moved.workers().value().size() == 2);
    }
    for (const auto pid : pids) {
        ends_well(pid);
    }
}

int main() {
    select_of_every_kind();
    two_sources_of_another_process();
    inbox();
    outbox();
}
