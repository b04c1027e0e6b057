// tensor, and a tensor that is taken.
#include "agent.hpp"

#include <algorithm>
#include <complex>

namespace {

// The types of a tensor's elements, in the order of ABI.md.
constexpr ramway::dtype types[] = {
    {0, 8}, {0, 16}, {0, 32},  {0, 64}, {1, 8}, {1, 16}, {1, 32}, {1, 64}, {2, 16}, {2, 32}, {2, 64}, {4, 16},
    {5, 64}, {5, 128}, {6, 8}, {7, 8},  {8, 8}, {9, 8},  {10, 8}, {11, 8}, {12, 8}, {13, 8}, {14, 8},
};

// The elements by their C++ type, where there is one in C++20: the same bytes, and nothing else.
template <class... T>
bool typed(const ramway::tensor &t) {
    return ((t.as<T>().has_value() == (t.dtype() == ramway::element<T>::type)) && ...) &&
           ((!t.as<T>() || std::as_bytes(*t.as<T>()).data() == t.bytes().data()) && ...);
}

std::size_t offset_of(std::span<const std::byte> elements) { return reinterpret_cast<std::uintptr_t>(elements.data()) % 64; }

} // namespace

template <class Sender>
static void send_by(Sender &tx, line &line) {
    const auto type = types[static_cast<std::size_t>(line.number("type"))];
    const auto tag = line.unsigned_number("tag");
    const auto dims = line.text("shape"), hex = line.text("data");
    const bool in_place = line.yes("reserve");
    line.end();
    std::vector<std::uint64_t> shape;
    for (std::size_t at = 0; at < dims.size(); at = std::min(dims.find('x', at), dims.size() - 1) + 1) {
        shape.push_back(std::stoull(dims.substr(at)));
    }
    std::vector<std::byte> data(hex.size() / 2);
    for (std::size_t i = 0; i < data.size(); i++) data[i] = static_cast<std::byte>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
    std::size_t offset = 0;
    if (in_place) {
        auto slot = tx.reserve_tensor(type, shape, open_timeout).value();
        offset = offset_of(slot.data());
        std::ranges::copy(data, slot.data().begin());
        std::move(slot).commit(tag).value();
    } else {
        tx.send_tensor(type, shape, tag, data, open_timeout).value();
    }
    say("sent offset=", offset);
}

void tensor(ends &e, line &line) {
    if (e.pub) send_by(e.pub, line);
    else send_by(e.tx, line);
}

bool say_tensor(const ramway::result<ramway::tensor> &t, std::uint64_t tag) {
    if (t.code() == ramway::status::invalid_argument) return false;
    if (!t) throw ramway::exception(t.error());
    if (!typed<std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t, std::uint32_t,
               std::uint64_t, float, double, std::complex<float>, std::complex<double>, bool>(*t)) {
        throw bad_message(tag & 0xFFFFFFFFu, "the elements by their type");
    }
    std::string shape, data;
    for (const auto dim : t->shape()) shape += (shape.empty() ? "" : "x") + std::to_string(dim);
    for (const auto byte : t->bytes()) {
        for (const int shift : {4, 0}) data += "0123456789abcdef"[std::to_integer<unsigned>(byte) >> shift & 15];
    }
    const auto type = std::ranges::find(types, t->dtype()) - std::begin(types);
    say("tensor type=", type, " shape=", shape, " tag=", tag, " offset=", offset_of(t->bytes()), " data=", data);
    return true;
}
