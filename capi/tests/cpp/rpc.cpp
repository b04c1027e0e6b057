// RPC of ramway.hpp: calls, callbacks, streams as ranges, handlers that throw, answers from other threads, peers that are killed.
#include "ramway.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <iostream>
#include <map>
#include <numeric>
#include <ranges>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include <csignal>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(...)                                                                     \
    do {                                                                               \
        if (!(__VA_ARGS__)) {                                                          \
            std::cerr << __FILE__ << ':' << __LINE__ << ": " #__VA_ARGS__ "\n";        \
            std::exit(1);                                                              \
        }                                                                              \
    } while (0)

namespace rpc = ramway::rpc;
using namespace std::chrono_literals;
using namespace std::string_view_literals;

static_assert(std::ranges::input_range<rpc::stream>);
static_assert(std::is_move_constructible_v<rpc::client> && !std::is_copy_constructible_v<rpc::client>);
static_assert(std::is_move_constructible_v<rpc::server> && !std::is_copy_constructible_v<rpc::server>);
static_assert(std::is_move_constructible_v<rpc::reply> && !std::is_copy_constructible_v<rpc::reply>);
static_assert(std::is_move_constructible_v<rpc::pending> && !std::is_copy_constructible_v<rpc::pending>);
static_assert(std::is_move_constructible_v<rpc::call> && !std::is_copy_constructible_v<rpc::call>);
static_assert(!std::is_move_constructible_v<rpc::request>);

static int from_child[2];

static void say(char what) { CHECK(write(from_child[1], &what, 1) == 1); }

static char hear() {
    char what = 0;
    CHECK(read(from_child[0], &what, 1) == 1);
    return what;
}

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

template <class T>
static T read_as(std::span<const std::byte> from) {
    T value;
    CHECK(from.size() == sizeof value);
    std::memcpy(&value, from.data(), sizeof value);
    return value;
}

template <class T>
static ramway::bytes bytes_of(const T &value) {
    return std::as_bytes(std::span(&value, 1));
}

// ---- a server ----

static rpc::server *serving;

static void on_term(int) { serving->shutdown(10s); }

/// Numbers below the request's, as there is room; keeps itself until it is answered.
struct counting : std::enable_shared_from_this<counting> {
    explicit counting(rpc::call of) : call(std::move(of)), count(read_as<std::uint32_t>(call.body())) {}
    void go_on() {
        while (!call.is_over()) {
            if (next == count) {
                CHECK(call.finish());
                return;
            }
            const auto sent = call.try_send(bytes_of(next));
            if (!sent) {
                if (sent.error().code() == ramway::status::interrupted) {
                    CHECK(call.is_cancelled());
                    say('c');
                    CHECK(call.finish());
                } else {
                    CHECK(sent.error().code() == ramway::status::full);
                }
                return;
            }
            ++next;
        }
    }
    rpc::call call;
    std::uint32_t count;
    std::uint32_t next = 0;
};

static void serve() {
    auto server = rpc::server::bind("rpc-cpp", {.capacity = 65536, .max_in_flight = 16}).value();
    std::vector<rpc::call> kept;
    server
        .method(1,
                [](rpc::request &request) {
                    CHECK(request.method() == 1 && request.peer().uid == geteuid() && !request.is_cancelled());
                    CHECK(request.set_reply_meta(request.meta()));
                    CHECK(request.reply(request.body()));
                    CHECK(request.reply(request.body()).code() == ramway::status::invalid_argument);
                })
        .value();
    server.method(2, [](rpc::request &request) { return "you sent " + std::string(request.text()); }).value();
    server
        .method("Test.Half",
                [](rpc::request &request) -> ramway::result<std::vector<std::uint32_t>, rpc::fault> {
                    const auto value = read_as<std::uint32_t>(request.body());
                    if (value % 2 != 0) {
                        return rpc::fault{value, "odd"};
                    }
                    return std::vector{value / 2};
                })
        .value();
    server.method(4, [](rpc::request &request) {
              CHECK(request.reply_with(100, [](std::span<std::byte> to) {
                  std::ranges::fill(to, std::byte{'x'});
                  return to.size() - 1;
              }));
          })
        .value();
    server.method(5, [](rpc::request &) {}).value();
#ifdef __cpp_exceptions
    server.method(6, [](rpc::request &) -> std::string { throw rpc::fault{66, "thrown"}; }).value();
    server.method(7, [](rpc::request &) -> std::string { throw std::runtime_error("unmeant"); }).value();
    server.method(8, [](rpc::request &) -> std::string { throw 5; }).value();
    server.deferred(9, [](rpc::call) { throw 5; }).value();
    server.method(15, [](rpc::request &request) {
              CHECK(request.reply_with(10, [](std::span<std::byte>) -> std::size_t { throw rpc::fault{1, "late"}; }));
          })
        .value();
#endif
    server.deferred(10, [&](rpc::call call) {
              kept.push_back(std::move(call));
              say('k');
          })
        .value();
    server.method(11, [&](rpc::request &) {
              const auto many = static_cast<std::uint32_t>(kept.size());
              for (auto &call : kept) {
                  CHECK(call.reply(call.body()) && call.is_over());
              }
              kept.clear();
              return std::vector{many};
          })
        .value();
    server.deferred(12, [](rpc::call call) {
              auto c = std::make_shared<counting>(std::move(call));
              CHECK(c->call.on_change([c] { c->go_on(); }));
              c->go_on();
          })
        .value();
    server.deferred(13, [](rpc::call call) {
              std::thread([call = std::move(call)]() mutable {
                  // The handler returned long ago; the reply is made here.
                  CHECK(call.reply_with(call.body().size(), [&](std::span<std::byte> to) {
                      std::ranges::copy(call.body(), to.begin());
                      std::ranges::reverse(to);
                      return to.size();
                  }));
              }).detach();
          })
        .value();
    server.deferred("Test.Lost", [](rpc::call) {}).value();
    CHECK(server.method(1, [](rpc::request &) {}).code() == ramway::status::already_exists);
    CHECK(server.method(RAMWAY_METHOD_RESERVED, [](rpc::request &) {}).code() == ramway::status::invalid_argument);
    serving = &server;
    CHECK(signal(SIGTERM, on_term) != SIG_ERR);
    CHECK(access(server.path().c_str(), F_OK) == 0 && server.clients() == 0);
    server.run().value();
    CHECK(server.poll().code() == ramway::status::closed);
}

static void terminated(pid_t pid) {
    CHECK(kill(pid, SIGTERM) == 0);
    ends_well(pid);
}

static void failed(const rpc::result<rpc::reply> &found, rpc::status status, std::uint32_t code, const char *text) {
    if (!found && found.error().status() != status) {
        std::cerr << ramway_rpc_status_name(static_cast<std::uint32_t>(found.error().status())) << ": " << found.error().what() << '\n';
    }
    CHECK(!found && found.error().status() == status && found.error().code() == code);
    CHECK(found.error().text().find(text) != std::string::npos);
    CHECK(found.error().error() == ramway::status::ok);
}

static void calls() {
    const pid_t server = child(serve);
    auto connected = rpc::client::connect("rpc-cpp");
    auto client = std::move(connected.value());
    CHECK(client.max_in_flight() == 16 && client.in_flight() == 0 && client.is_ready());
    CHECK(client.peer_pid() == static_cast<std::uint32_t>(server) && client.peer_uid() == geteuid());
    CHECK(client.is_peer_alive() && client.max_request_len() == 65536 - 32);
    {
        const auto reply = client.call(1, "hello"sv, {.meta = "17"sv}).value();
        CHECK(reply.text() == "hello" && reply.meta().size() == 2 && !reply.more());
    }
    CHECK(client.call(1, {}).value().body().empty());
    CHECK(client.call(2, "this"sv).value().text() == "you sent this");
    const auto half = rpc::method_id("Test.Half");
    for (std::uint32_t value : {42u, 43u}) {
        auto reply = client.call(half, bytes_of(value));
        if (value == 42) {
            CHECK(read_as<std::uint32_t>(reply.value().body()) == 21);
        } else {
            failed(reply, rpc::status::application, 43, "odd");
            CHECK(reply.error().may_have_run());
        }
    }
    CHECK(client.call(4, {}).value().text() == std::string(99, 'x'));
    failed(client.call(5, {}), rpc::status::handler_failed, 0, "without an answer");
    failed(client.call(rpc::method_id("Test.Lost"), {}), rpc::status::handler_failed, 0, "without an answer");
    failed(client.call(4000, {}), rpc::status::no_such_method, 0, "no such method");
    CHECK(client.call(13, "abc"sv).value().text() == "cba");
    const auto too_long = client.call(1, std::string(70000, 'x'));
    CHECK(!too_long && too_long.error().error() == ramway::status::too_large && !too_long.error().may_have_run());
    CHECK(too_long.error().status() == rpc::status::none);
#ifdef __cpp_exceptions
    failed(client.call(6, {}), rpc::status::application, 66, "thrown");
    failed(client.call(7, {}), rpc::status::handler_failed, 0, "unmeant");
    failed(client.call(8, {}), rpc::status::handler_failed, 0, "no std::exception");
    failed(client.call(9, {}), rpc::status::handler_failed, 0, "without an answer");
    failed(client.call(15, {}), rpc::status::application, 1, "late");
    try {
        (void)client.call(4000, {}).value();
        CHECK(false);
    } catch (const rpc::call_exception &cause) {
        CHECK(cause.status() == rpc::status::no_such_method && !cause.error().may_have_run());
    }
#endif
    client.ping().value();
    client.ping(10s).value();
    const auto methods = client.describe().value();
    CHECK(methods.front().number == 1 && !methods.front().name);
    CHECK(std::ranges::count_if(methods, [&](const auto &m) { return m.number == half && m.name == "Test.Half"; }) == 1);
    // A time limit, and a wait that has one.
    // A busy machine may need more than the first limits to begin it: then it is not run.
    for (std::chrono::nanoseconds limit = 5ms;; limit *= 2) {
        const auto late = client.call(10, "x"sv, {.timeout = limit});
        CHECK(!late && late.error().is_timed_out() && limit < 60s);
        client.ping().value();
        pollfd said{from_child[0], POLLIN, 0};
        if (poll(&said, 1, 0) == 1) {
            CHECK(late.error().error() == ramway::status::timed_out);
            break;
        }
    }
    CHECK(hear() == 'k');
    {
        auto pending = client.start(10, "later"sv).value();
        CHECK(hear() == 'k');
        CHECK(pending.try_wait().error().error() == ramway::status::empty);
        CHECK(pending.wait_for(2ms).error().error() == ramway::status::empty);
        (void)client.call(11, {}).value();
        CHECK(pending.wait().value().text() == "later");
        CHECK(pending.try_wait().error().error() == ramway::status::invalid_argument);
        auto dropped = client.start(10, {}).value();
        CHECK(hear() == 'k' && client.in_flight() == 1);
    }
    CHECK(read_as<std::uint32_t>(client.call(11, {}).value().body()) == 1);
    std::move(client).close().value();
    terminated(server);
}

static void streams() {
    const pid_t server = child(serve);
    auto client = rpc::client::connect("rpc-cpp").value();
    const std::uint32_t many = 100;
    for (std::uint32_t window : {0u, 1u, 7u}) {
        auto stream = client.stream(12, bytes_of(many), {.window = window}).value();
        std::uint32_t next = 0;
        for (auto &element : stream) {
            CHECK(read_as<std::uint32_t>(element.value().body()) == next++);
        }
        CHECK(next == many && !stream.next().value().has_value());
    }
    const std::uint32_t endless = 1000000;
    {
        auto stream = client.stream(12, bytes_of(endless), {.window = 2}).value();
        CHECK(read_as<std::uint32_t>(stream.next().value()->body()) == 0);
        // One that is not read stops nobody else.
        CHECK(client.call(2, "it"sv).value().text() == "you sent it");
        CHECK(read_as<std::uint32_t>(stream.next_for(60s).value()->body()) == 1);
    }
    CHECK(hear() == 'c');
    auto stream = client.stream(5, {}).value();
    std::size_t errors = 0;
    for (auto &element : stream) {
        CHECK(element.error().status() == rpc::status::handler_failed);
        ++errors;
    }
    CHECK(errors == 1);
    auto waits = client.stream(10, {}).value();
    CHECK(hear() == 'k' && waits.try_next().error().error() == ramway::status::empty);
    waits.cancel();
    CHECK(!waits.next().value().has_value());
    terminated(server);
}

static void callbacks() {
    const pid_t server = child(serve);
    auto client = rpc::client::connect("rpc-cpp").value();
    std::uint32_t sum = 0, ends = 0, elements = 0;
    for (std::uint32_t i = 0; i < 300; ++i) {
        client.start(1, bytes_of(i), {}, [&](rpc::result<rpc::reply> reply) {
                  sum += read_as<std::uint32_t>(reply.value().body());
                  ++ends;
              })
            .value();
    }
    const std::uint32_t many = 50;
    client.stream(12, bytes_of(many), {.window = 4}, [&](rpc::result<rpc::reply> reply) {
              reply.value().more() ? ++elements : ++ends;
          })
        .value();
    const int fd = client.fd().value();
    while (ends < 301) {
        pollfd fds{fd, POLLIN, 0};
        const auto due = client.due();
        const auto ms = std::chrono::ceil<std::chrono::milliseconds>(due).count();
        CHECK(::poll(&fds, 1, due == ramway::forever ? -1 : static_cast<int>(ms)) >= 0);
        while (client.poll(0s)) {
        }
    }
    CHECK(sum == 300 * 299 / 2 && elements == many);
    CHECK(client.poll().code() == ramway::status::empty);
    // In a callback calls are started and cancelled, and a reply is kept; what waits is busy.
    std::vector<rpc::reply> kept;
    std::uint64_t other = 0;
    int again = 0;
    other = client.start(10, {}, {}, [&](auto) { CHECK(false); }).value();
    CHECK(hear() == 'k');
    client.start(1, "first"sv, {}, [&](rpc::result<rpc::reply> reply) {
              kept.push_back(std::move(reply.value()));
              CHECK(client.poll().code() == ramway::status::busy);
              CHECK(client.call(1, {}).error().error() == ramway::status::busy);
              client.cancel(other).value();
              client.start(1, "second"sv, {}, [&](auto) { ++again; }).value();
          })
        .value();
    while (again == 0) {
        client.poll().value();
    }
    CHECK(kept.size() == 1 && kept.front().text() == "first");
    // One that cancels itself between two elements.
    std::uint64_t self = 0;
    int seen = 0;
    self = client.stream(12, bytes_of(many), {.window = 1}, [&](auto) {
                     ++seen;
                     client.cancel(self).value();
                 })
               .value();
    client.poll().value();
    CHECK(hear() == 'c' && seen == 1 && client.poll().code() == ramway::status::empty);
#ifdef __cpp_exceptions
    client.start(1, {}, {}, [](auto) { throw std::runtime_error("out of poll"); }).value();
    try {
        (void)client.poll();
        CHECK(false);
    } catch (const std::runtime_error &cause) {
        CHECK(cause.what() == "out of poll"sv);
    }
#endif
    CHECK(client.call(1, "still"sv).value().text() == "still");
    // A client that goes with calls under way: their callbacks are not called, and go.
    auto watched = std::make_shared<int>(1);
    client.start(10, {}, {}, [watched](auto) { CHECK(false); }).value();
    CHECK(hear() == 'k' && watched.use_count() == 2);
    {
        const auto gone = std::move(client);
    }
    CHECK(watched.use_count() == 1);
    terminated(server);
}

static void killed_peers() {
    const pid_t server = child(serve);
    auto client = rpc::client::connect("rpc-cpp").value();
    auto pending = client.start(10, {}).value();
    CHECK(hear() == 'k');
    is_killed(server);
    const auto found = pending.wait();
    CHECK(found.error().error() == ramway::status::peer_dead && found.error().may_have_run());
    CHECK(client.call(1, {}).error().error() == ramway::status::peer_dead);
    CHECK(rpc::client::connect("rpc-cpp", {.timeout = 5ms}).code() == ramway::status::not_found);
}

/// A server whose work is done by other threads, clients in more.
static void threads() {
    auto server = rpc::server::bind("rpc-cpp").value();
    std::atomic<int> running = 0;
    server.deferred(1, [&](rpc::call call) {
              ++running;
              std::thread([&running, call = std::move(call)]() mutable {
                  if (call.is_stream()) {
                      const auto many = read_as<std::uint32_t>(call.body());
                      for (std::uint32_t i = 0; i < many; ++i) {
                          if (!(i % 2 == 0 ? call.send(bytes_of(i)) : call.send_for(60s, bytes_of(i)))) {
                              CHECK(call.is_cancelled());
                              break;
                          }
                      }
                      CHECK(call.finish());
                  } else {
                      CHECK(call.reply(call.body()));
                  }
                  --running;
              }).detach();
          })
        .value();
    std::thread runner([&] { server.run().value(); });
    std::vector<std::thread> clients;
    for (int i = 0; i < 3; ++i) {
        clients.emplace_back([] {
            auto client = rpc::client::connect("rpc-cpp").value();
            const std::uint32_t many = 20;
            for (std::uint32_t k = 0; k < 50; ++k) {
                CHECK(read_as<std::uint32_t>(client.call(1, bytes_of(k)).value().body()) == k);
            }
            auto stream = client.stream(1, bytes_of(many), {.window = 3}).value();
            std::uint32_t next = 0;
            for (auto &element : stream) {
                CHECK(read_as<std::uint32_t>(element.value().body()) == next++);
            }
            CHECK(next == many);
            auto cancelled = client.stream(1, bytes_of(many), {.window = 1}).value();
            (void)cancelled.next().value();
        });
    }
    for (auto &client : clients) {
        client.join();
    }
    server.shutdown(ramway::forever);
    runner.join();
    // What they use is still there while they end.
    while (running != 0) {
        std::this_thread::yield();
    }
}

static void wakes() {
    auto server = rpc::server::bind("rpc-cpp").value();
    CHECK(server.run(2ms).code() == ramway::status::timed_out);
    server.wake();
    CHECK(server.run().code() == ramway::status::interrupted);
    CHECK(server.fd().value() >= 0 && server.poll());
    rpc::call kept = [&] {
        std::vector<rpc::call> calls;
        server.deferred(1, [&](rpc::call call) {
                  calls.push_back(std::move(call));
                  server.wake();
              })
            .value();
        std::thread other([] {
            auto client = rpc::client::connect("rpc-cpp").value();
            auto pending = client.start(1, {}).value();
            std::thread waker([&] { client.wake(); });
            // It is woken, or wakes too early and the next wait ends.
            CHECK(pending.wait().error().error() == ramway::status::interrupted);
            waker.join();
        });
        while (calls.empty()) {
            CHECK(server.run(60s).code() == ramway::status::interrupted);
        }
        other.join();
        return std::move(calls.front());
    }();
    // A call may outlive its server.
    {
        const auto gone = std::move(server);
    }
    CHECK(kept.reply("too late"sv) && kept.is_over());
}

int main() {
    CHECK(pipe(from_child) == 0);
    calls();
    streams();
    callbacks();
    killed_peers();
    threads();
    wakes();
}
