// Samples for examples/python/training.py. feature_producer.cpp sends them into a ring; as a shared library they are
// made by a Python worker too, so that what is compared is the way of the batches alone.
#include <cstddef>
#include <cstdint>

namespace {

// Splitmix64: the n-th number without the n - 1 before it.
std::uint64_t mix(std::uint64_t n) {
    n += 0x9E3779B97F4A7C15u;
    n = (n ^ (n >> 30)) * 0xBF58476D1CE4E5B9u;
    n = (n ^ (n >> 27)) * 0x94D049BB133111EBu;
    return n ^ (n >> 31);
}

// Two numbers from -1 to 1.
void two(std::uint64_t bits, float *to) {
    to[0] = static_cast<float>(static_cast<std::int32_t>(bits)) * 0x1p-31f;
    to[1] = static_cast<float>(static_cast<std::int32_t>(bits >> 32)) * 0x1p-31f;
}

}  // namespace

// Writes `rows` rows of `columns` (odd) float32: a label, then the features. The label is 1 where a hidden linear model,
// with noise, says so.
extern "C" void make_batch(std::uint64_t number, float *to, std::size_t rows, std::size_t columns) {
    for (std::size_t row = 0; row < rows; ++row, to += columns) {
        float score = 0;
        const std::uint64_t seed = (number * rows + row) * columns;
        for (std::size_t column = 1; column < columns; column += 2) {
            float weights[2];
            two(mix(seed + column), to + column);
            two(mix(column), weights);
            score += to[column] * weights[0] + to[column + 1] * weights[1];
        }
        float noise[2];
        two(mix(seed), noise);
        to[0] = score + noise[0] > 0 ? 1.0f : 0.0f;
    }
}
