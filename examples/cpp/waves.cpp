// Frames of 256 samples (float32) for a program that wants them as arrays: the C++ half of examples/python/waves.py, and
// the twin of examples/src/bin/waves.rs.
#include <ramway.hpp>

#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

namespace {

constexpr std::size_t samples = 256;
constexpr std::uint32_t frame_type = 1;     // `samples` float32, with its number as the tag
constexpr std::uint32_t shutdown_type = 2;  // nothing but the number of frames, as its tag

void produce(const char *name, std::uint64_t count) {
    using clock = std::chrono::steady_clock;
    // Each frame begins on a cache line.
    auto tx = ramway::sender::open_or_create(
                  name, {.capacity = 1 << 20, .align = 64, .timeout = std::chrono::seconds(5)})
                  .value();
    // A tone with an overtone, as a card's buffer would have it; a frame is a window that moves on.
    std::vector<float> tone;
    for (std::size_t at = 0; at < 8 * samples; ++at) {
        const auto t = static_cast<float>(at);
        tone.push_back(std::sin(t * 0.05f) + 0.25f * std::sin(t * 0.31f));
    }
    double energy = 0;
    const auto start = clock::now();
    for (std::uint64_t number = 0; number < count; ++number) {
        const auto window = std::span(tone).subspan(number * 7 % (7 * samples), samples);
        energy += static_cast<double>(window[0] * window[0]);
        tx.send(frame_type, number, window).value();
    }
    tx.send(shutdown_type, count, {}).value();
    tx.close().value();
    const std::chrono::duration<double> took = clock::now() - start;
    std::printf("sent %llu frames in %.2f s: %.2f million a second\n", static_cast<unsigned long long>(count),
                took.count(), static_cast<double>(count) / took.count() / 1e6);
    std::printf("energy of the first samples: %.1f\n", energy);
}

}  // namespace

int main(int argc, char **argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: waves RING COUNT\n");
        return 1;
    }
    try {
        produce(argv[1], std::strtoull(argv[2], nullptr, 10));
    } catch (const ramway::exception &error) {
        std::fprintf(stderr, "waves: %s\n", error.what());
        return 1;
    }
}
