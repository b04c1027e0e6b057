// A camera over a conveyor belt: draws pictures straight into a bus, at a steady rate, and never waits for the
// program that reads them. The C++ half of `belt`; what it is told back is how much to amplify.
//
// A picture is a tensor of uint8, 241 rows of 320 pixels. As real sensors have it, the last row is not a picture but
// what the camera knows of it (`telemetry`). Parcels come from the left; the lamp above the belt grows weaker all the
// time.
#include <ramway.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t width = 320, height = 240;
// Pixels that the belt moves from one picture to the next.
constexpr std::uint64_t speed = 4;
constexpr std::uint32_t gain_type = 1;   // from the watcher: a float, what to amplify by from the next picture on
constexpr std::uint32_t report_type = 2; // to the watcher, at the end: `report`

struct telemetry {
    std::uint64_t number;   // of the picture, from 0 on; those that were left out count
    std::uint64_t exposed;  // when, in nanoseconds of CLOCK_MONOTONIC
    std::uint64_t left_out; // pictures so far that found the ring full
    float gain;
    float lamp;
};
static_assert(sizeof(telemetry) == 32 && sizeof(telemetry) <= width);

struct report {
    std::uint64_t pictures;
    std::uint64_t left_out;
    std::uint64_t parcels; // that have wholly passed the middle of the picture
    std::uint64_t length;  // of all these together, in pixels
};

// The same parcels on every run: what is seen can be compared with what was there.
class generator {
  public:
    std::uint32_t next() {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 7;
        state_ ^= state_ << 17;
        return static_cast<std::uint32_t>(state_ >> 32);
    }
    std::uint32_t between(std::uint32_t from, std::uint32_t to) { return from + next() % (to - from); }

  private:
    std::uint64_t state_ = 0x9E3779B97F4A7C15;
};

struct parcel {
    std::int64_t front; // where its front is when picture 0 is taken: left of the picture
    std::int64_t length;
    std::size_t top, bottom;
    float brightness;
};

class belt {
  public:
    explicit belt(std::uint64_t pictures) {
        generator random;
        // None is higher or lower than the rows 80 to 100, and none reaches up to row 30.
        for (std::int64_t front = -20; front > -static_cast<std::int64_t>(pictures * speed);) {
            const auto length = static_cast<std::int64_t>(random.between(36, 100));
            const std::size_t top = random.between(30, 80), bottom = top + random.between(70, 130);
            parcels_.push_back({front, length, top, bottom, static_cast<float>(random.between(130, 200))});
            front -= length + static_cast<std::int64_t>(random.between(40, 160));
        }
        for (auto &one : noise_) {
            one = static_cast<float>(static_cast<int>(random.between(0, 15)) - 7);
        }
    }

    void draw(std::uint64_t number, float light, std::uint8_t *to) const {
        const auto moved = static_cast<std::int64_t>(number * speed);
        for (std::size_t y = 0; y < height; ++y, to += width) {
            std::array<float, width> row;
            row.fill(60);
            for (const auto &one : parcels_) {
                const auto front = one.front + moved, back = front - one.length;
                if (front <= 0 || back >= static_cast<std::int64_t>(width) || y < one.top || y >= one.bottom) {
                    continue;
                }
                const auto from = std::max<std::int64_t>(back, 0), until = std::min<std::int64_t>(front, width);
                std::fill(row.begin() + from, row.begin() + until, one.brightness);
            }
            const auto *grain = &noise_[(number * 7919 + y * 613) % (noise_.size() - width)];
            for (std::size_t x = 0; x < width; ++x) {
                to[x] = static_cast<std::uint8_t>(std::clamp(row[x] * light + grain[x], 0.0f, 255.0f));
            }
        }
    }

    report passed(std::uint64_t pictures) const {
        report told{pictures, 0, 0, 0};
        for (const auto &one : parcels_) {
            const auto back = one.front - one.length + static_cast<std::int64_t>((pictures - 1) * speed);
            if (back > static_cast<std::int64_t>(width / 2)) {
                ++told.parcels;
                told.length += static_cast<std::uint64_t>(one.length);
            }
        }
        return told;
    }

  private:
    std::vector<parcel> parcels_;
    std::array<float, 1 << 14> noise_{};
};

// What the watcher has said meanwhile.
void listen(ramway::receiver &from, float &gain) {
    while (true) {
        const auto told = from.try_recv();
        if (!told) {
            return;
        }
        if (const auto value = told->as<float>(); value && told->type_id() == gain_type) {
            gain = *value;
        }
    }
}

int film(const std::string &name, std::uint64_t pictures, double rate) {
    using clock = std::chrono::steady_clock;
    auto bus = ramway::bus::connect(name).value();
    const belt scene(pictures);
    const auto start = clock::now();
    std::uint64_t left_out = 0;
    float gain = 1;
    for (std::uint64_t number = 0; number < pictures; ++number) {
        std::this_thread::sleep_until(start + std::chrono::duration_cast<clock::duration>(
                                                  std::chrono::duration<double>(static_cast<double>(number) / rate)));
        listen(bus.receiver(), gain);
        const float lamp = 1.0f - 0.6f * static_cast<float>(number) / static_cast<float>(pictures);
        const auto exposed = clock::now().time_since_epoch();
        auto slot = bus.sender().try_reserve_tensor<std::uint8_t>({height + 1, width});
        if (slot.code() == ramway::status::full && bus.is_peer_alive()) {
            ++left_out;
            continue;
        }
        if (slot.code() == ramway::status::full) {
            std::fprintf(stderr, "camera: the watcher died; %llu pictures were left out\n",
                         static_cast<unsigned long long>(left_out));
            return 2;
        }
        if (!slot) {
            std::fprintf(stderr, "camera: %s\n", slot.error().what());
            return 2;
        }
        const auto pixels = slot->data();
        scene.draw(number, lamp * gain, pixels.data());
        const auto now = static_cast<std::uint64_t>(std::chrono::nanoseconds(exposed).count());
        const telemetry known{number, now, left_out, gain, lamp};
        auto *last = pixels.data() + height * width;
        std::memset(last, 0, width);
        std::memcpy(last, &known, sizeof known);
        std::move(*slot).commit(number).value();
    }
    auto told = scene.passed(pictures);
    told.left_out = left_out;
    bus.sender().send_value(report_type, told).value();
    bus.sender().close().value();
    std::printf("camera: %llu pictures, %llu of them left out\n", static_cast<unsigned long long>(pictures),
                static_cast<unsigned long long>(left_out));
    return 0;
}

}  // namespace

int main(int argc, char **argv) {
    if (argc != 4) {
        std::fprintf(stderr, "usage: camera LISTENER PICTURES PER-SECOND\n");
        return 1;
    }
    try {
        return film(argv[1], std::strtoull(argv[2], nullptr, 10), std::strtod(argv[3], nullptr));
    } catch (const ramway::exception &error) {
        std::fprintf(stderr, "camera: %s\n", error.what());
        return 1;
    }
}
