// Sends batches of features.cpp into a ring: the C++ half of examples/python/training.py.
#include <ramway.hpp>

#include <cstdio>
#include <cstdlib>

extern "C" void make_batch(std::uint64_t number, float *to, std::size_t rows, std::size_t columns);

namespace {

// A batch is a tensor of float32 with its number as the tag, written where the trainer reads it.
void produce(const char *name, std::uint64_t count, std::size_t rows, std::size_t columns) {
    const std::uint64_t batch = rows * columns * sizeof(float);
    // Room for four batches: so many are ready before they are asked for.
    auto tx = ramway::sender::open_or_create(name, {.capacity = 4 * batch + 4096, .timeout = std::chrono::seconds(5)})
                  .value();
    for (std::uint64_t number = 0; number < count; ++number) {
        auto slot = tx.reserve_tensor<float>({rows, columns}).value();
        make_batch(number, slot.data().data(), rows, columns);
        std::move(slot).commit(number).value();
    }
    tx.close().value();
}

}  // namespace

int main(int argc, char **argv) {
    if (argc != 5) {
        std::fprintf(stderr, "usage: feature_producer RING BATCHES ROWS COLUMNS\n");
        return 1;
    }
    const auto number = [&](int at) { return std::strtoull(argv[at], nullptr, 10); };
    try {
        produce(argv[1], number(2), number(3), number(4));
    } catch (const ramway::exception &error) {
        std::fprintf(stderr, "feature_producer: %s\n", error.what());
        return 1;
    }
}
