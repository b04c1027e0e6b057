// A server of RPC with the agents' methods, in a thread of its own, and its commands.
#include "agent.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <unistd.h>

namespace {

namespace rpc = ramway::rpc;

// What the handlers have seen.
struct counts {
    std::atomic<std::uint64_t> began = 0, ended = 0, cancelled = 0, elements = 0;
};

// A handler that runs, until this goes.
class running {
  public:
    explicit running(counts &of) : of_(&of) { of.began++; }
    running(running &&other) noexcept : of_(std::exchange(other.of_, nullptr)) {}
    running &operator=(running &&) = delete;
    ~running() {
        if (of_ != nullptr) of_->ended++;
    }
    counts &seen() const { return *of_; }

  private:
    counts *of_;
};

// The words of a request, if it has that many.
template <std::size_t N>
std::array<std::uint32_t, N> asked(std::span<const std::byte> body) {
    std::array<std::uint32_t, N> words{};
    if (body.size() < sizeof words) throw rpc::fault{0, "the request is no request of this method"};
    std::memcpy(words.data(), body.data(), sizeof words);
    return words;
}

// A call of method 4, which goes on by the server's thread alone.
class elements {
  public:
    elements(rpc::call call, counts &seen) : running_(seen), call_(std::move(call)) {
        const auto [count, size, code, seq] = asked<4>(call_.body());
        count_ = count, code_ = code, seq_ = seq, size_ = size;
        pattern_ = counted(0, size_ + 256);
    }
    static void begin(rpc::call call, counts &seen) {
        const auto one = std::make_shared<elements>(std::move(call), seen);
        (void)one->call_.on_change([one] { one->go_on(); });
        one->go_on();
    }

  private:
    void go_on() {
        while (!call_.is_over() && sent_ < count_) {
            const auto put = call_.try_send(std::span(pattern_).subspan((seq_ + sent_) % 256, size_));
            if (put) {
                sent_++, running_->seen().elements++;
                continue;
            }
            if (put.code() == ramway::status::full) return;
            running_->seen().cancelled++;
            running_.reset();
            (void)call_.finish();
        }
        if (call_.is_over()) return;
        running_.reset();
        if (code_ == 0) (void)call_.finish();
        else (void)call_.fail(code_, "after " + std::to_string(count_));
    }

    std::optional<running> running_;
    rpc::call call_;
    std::uint32_t count_ = 0, code_ = 0, seq_ = 0, sent_ = 0;
    std::size_t size_ = 0;
    std::vector<std::byte> pattern_;
};

void echo_of(rpc::call &call) {
    (void)call.set_reply_meta(call.meta());
    (void)call.reply(call.body());
}

}  // namespace

struct serving {
    explicit serving(rpc::server of) : server(std::move(of)) {
        const auto inline_method = [&](auto key, auto handler) {
            server.method(key, [this, handler](rpc::request &request) {
                      const running here(seen);
                      return handler(request);
                  })
                .value();
        };
        inline_method(1u, [](rpc::request &request) {
            (void)request.set_reply_meta(request.meta());
            (void)request.reply(request.body());
        });
        inline_method(2u, [](rpc::request &request) {
            const auto [seq, len] = asked<2>(request.body());
            (void)request.reply_with(len, [first = seq](std::span<std::byte> to) {
                for (std::size_t i = 0; i < to.size(); i++) to[i] = static_cast<std::byte>(first + i);
                return to.size();
            });
        });
        inline_method(3u, [](rpc::request &request) -> std::string {
            const auto [code] = asked<1>(request.body());
            throw rpc::fault{code, std::string(request.text().substr(4))};
        });
        server.deferred(4u, [this](rpc::call call) { elements::begin(std::move(call), seen); }).value();
        server.deferred(5u, [this](rpc::call call) { hold(std::move(call)); }).value();
        inline_method(6u, [](rpc::request &) -> std::string { throw std::runtime_error("method 6"); });
        inline_method(7u, [](rpc::request &request) {
            const auto left = request.remaining();
            const auto ms = left ? std::chrono::ceil<std::chrono::milliseconds>(*left).count() : 0;
            return std::array{request.peer().pid, static_cast<std::uint32_t>(ms)};
        });
        inline_method(std::string(agent_sum), [](rpc::request &request) { return std::array{crc32(request.body())}; });
        thread = std::thread([this] { serve(); });
    }
    ~serving() {
        server.shutdown(std::chrono::nanoseconds(0));
        if (thread.joinable()) thread.join();
    }

    void serve() {
        auto outcome = server.run();
        while (!outcome && outcome.code() == ramway::status::interrupted) {
            {
                const std::lock_guard lock(mutex);
                clients = server.clients(), answers = asks;
            }
            answered.notify_all();
            outcome = server.run();
        }
        const std::lock_guard lock(mutex);
        ended = std::move(outcome), over = true;
        answered.notify_all();
    }
    // The server's thread is asked: only it uses the server.
    std::size_t count_clients() {
        std::unique_lock lock(mutex);
        const auto mine = ++asks;
        server.wake();
        answered.wait(lock, [&] { return over || answers == mine; });
        return over ? 0 : clients;
    }
    void hold(rpc::call call) {
        running here(seen);
        const std::unique_lock lock(mutex);
        if (open) {
            echo_of(call);
            return;
        }
        const auto number = ++last_held;
        auto &[kept, handler] = held.emplace(number, std::pair{std::move(call), std::move(here)}).first->second;
        (void)kept.on_change([this, number] {
            const std::lock_guard again(mutex);
            const auto found = held.find(number);
            if (found == held.end() || !found->second.first.is_cancelled()) return;
            seen.cancelled++;
            (void)found->second.first.finish();
            held.erase(found);
        });
    }
    void open_gate() {
        const std::lock_guard lock(mutex);
        open = true;
        for (auto &[number, one] : held) echo_of(one.first);
        held.clear();
    }
    void join() {
        if (thread.joinable()) thread.join();
        std::exchange(ended, {}).value();
    }

    counts seen;
    std::mutex mutex;  // of what follows
    std::condition_variable answered;
    bool over = false, open = false;
    unsigned asks = 0, answers = 0;
    std::size_t clients = 0;
    ramway::result<void> ended;
    std::uint64_t last_held = 0;
    std::map<std::uint64_t, std::pair<rpc::call, running>> held;
    // Its handlers use all that.
    rpc::server server;
    std::thread thread;
};

void open_server(ends &e, line &line, const std::string &name) {
    rpc::server_options o;
    o.capacity = static_cast<std::uint64_t>(line.number("capacity", 65536));
    o.align = static_cast<std::uint32_t>(line.number("align", 16));
    o.wait = line.wait();
    o.max_clients = static_cast<std::uint32_t>(line.number("max_clients", 0));
    o.max_in_flight = static_cast<std::uint32_t>(line.number("max_in_flight", 0));
    o.max_bytes = static_cast<std::uint64_t>(line.number("max_bytes", 0));
    line.end();
    e.server = std::make_shared<serving>(rpc::server::bind(name, o).value());
    say("attached pid=", getpid(), " capacity=", o.capacity);
}

void serve_command(serving &server, line &line) {
    if (line.word == "served") {
        line.end();
        const auto clients = server.count_clients();
        // First those that have ended: so no more have ended than have begun.
        const std::uint64_t ended = server.seen.ended, began = server.seen.began;
        say("served began=", began, " running=", began - ended, " cancelled=", server.seen.cancelled,
            " elements=", server.seen.elements, " clients=", clients);
    } else if (line.word == "gate") {
        line.end();
        server.open_gate();
        say("opened");
    } else if (line.word == "shutdown") {
        const auto limit = line.number("limit");
        line.end();
        server.server.shutdown(std::chrono::milliseconds(limit));
        say("draining");
    } else if (line.word == "join") {
        line.end();
        server.join();
        say("ended");
    } else {
        throw refused(line.word + " is no command of a server");
    }
}

void close_server(serving &server) {
    server.server.shutdown(std::chrono::nanoseconds(0));
    server.join();
}
