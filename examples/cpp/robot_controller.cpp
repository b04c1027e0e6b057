// The controller of examples/src/bin/robot.rs, in C++: sees every picture of the camera, and reads it in place.
//
//     robot_controller pictures & robot recorder pictures FILE & robot camera pictures 1000
#include <ramway.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>

namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

/// A grey picture of 64 × 64 pixels, all of which are the low byte of its number.
constexpr std::size_t pixels = 64 * 64;

/// Refuses a picture that is not whole.
void check(const ramway::topic_view &picture) {
    const auto right = static_cast<std::byte>(picture.seq);
    if (picture.bytes().size() != pixels || !std::ranges::all_of(picture.bytes(), [&](auto b) { return b == right; })) {
        throw std::runtime_error("picture " + std::to_string(picture.seq) + " is not whole");
    }
}

/// How long ago it was drawn, by the camera's clock and this one's, which are the same.
nanoseconds age(const ramway::topic_view &picture) {
    return std::chrono::system_clock::now().time_since_epoch() - nanoseconds(picture.time);
}

void control(const std::string &topic) {
    // Reliable: the camera waits for this process when the log is full. A predecessor that was killed keeps its label until
    // the kernel has closed its files.
    auto camera =
        ramway::subscriber::open_or_create(topic, {.capacity = 1 << 20, .label = "controller", .timeout = 10s}).value();
    unsigned long count = 0;
    nanoseconds oldest{0};
    for (;;) {
        auto pictures = camera.messages();
        for (const auto &picture : pictures) {  // a view of the log, given back before the next one is taken
            check(picture);
            oldest = std::max(oldest, age(picture));
            if (++count % 100 == 0) {
                std::printf("%lu pictures so far\n", count);
                std::fflush(stdout);
            }
        }
        if (pictures.ended() == ramway::status::closed) {
            break;
        }
        if (pictures.ended() != ramway::status::peer_dead) {
            throw std::runtime_error(ramway_strerror(static_cast<int>(pictures.ended())));
        }
        // A camera that was killed is started again by its supervisor: it goes on with the next number.
        camera.wait_for_peer().value();
    }
    std::printf("%lu pictures, %lu missed, the oldest was %.3f ms old\n", count,
                static_cast<unsigned long>(camera.lost()), std::chrono::duration<double, std::milli>(oldest).count());
}

}  // namespace

int main(int argc, char **argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: robot_controller TOPIC\n");
        return 1;
    }
    try {
        control(argv[1]);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "robot_controller: %s\n", error.what());
        return 1;
    }
}
