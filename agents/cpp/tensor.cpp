// tensors.
#include "program.hpp"

#include <algorithm>
#include <complex>
#include <functional>
#include <numeric>

namespace {

// The types of a tensor's elements, in the order of ABI.md.
constexpr ramway::dtype types[] = {
    {0, 8}, {0, 16}, {0, 32},  {0, 64}, {1, 8}, {1, 16}, {1, 32}, {1, 64}, {2, 16}, {2, 32}, {2, 64}, {4, 16},
    {5, 64}, {5, 128}, {6, 8}, {7, 8},  {8, 8}, {9, 8},  {10, 8}, {11, 8}, {12, 8}, {13, 8}, {14, 8},
};

std::vector<std::uint64_t> shape_of(std::uint64_t seq) {
    static const auto shapes = [] {
        std::vector<std::vector<std::uint64_t>> all{{}, {0}, {1}, {2, 3}, {5, 0, 7}, {3, 1, 5, 2}, {257}, {}};
        all[7].assign(32, 1);
        all[7].back() = 2;
        return all;
    }();
    return shapes[seq / 24 % shapes.size()];
}

struct expected {
    ramway::dtype type;
    std::vector<std::uint64_t> shape;
    std::vector<std::byte> data;
    std::uint64_t tag;
};

// Tensor number `seq`; nothing where that is an ordinary message.
std::optional<expected> expect(std::uint64_t seq) {
    if (seq % 24 >= std::size(types)) return {};
    expected made{types[seq % 24], shape_of(seq), {}, 0};
    made.data.resize(std::accumulate(made.shape.begin(), made.shape.end(), std::uint64_t{made.type.bits} / 8, std::multiplies{}));
    const auto values = made.type.code == RAMWAY_DTYPE_BOOL ? 2u : 256u;
    for (std::size_t i = 0; i < made.data.size(); i++) made.data[i] = static_cast<std::byte>((seq + i) % values);
    made.tag = static_cast<std::uint64_t>(crc32(made.data)) << 32 | (seq & 0xFFFFFFFFu);
    return made;
}

void aligned(std::uint64_t seq, std::span<const std::byte> elements) {
    if (reinterpret_cast<std::uintptr_t>(elements.data()) % 64 != 0) {
        throw bad_message(seq, "the elements do not begin on a multiple of 64");
    }
}

void send(ramway::sender &tx, const arguments &args, const messages &all, std::uint64_t seq) {
    const auto e = expect(seq);
    if (!e) {
        const auto m = all[seq];
        tx.send(m.type_id, m.tag, m.data).value();
    } else if (args.text("how") == "reserve") {
        auto slot = tx.reserve_tensor(e->type, e->shape, args.limit()).value();
        aligned(seq, slot.data());
        std::ranges::copy(e->data, slot.data().begin());
        std::move(slot).commit(e->tag).value();
    } else {
        tx.send_tensor(e->type, e->shape, e->tag, e->data, args.limit()).value();
    }
}

// The elements by their C++ type, where there is one in C++20: the same bytes, and nothing else.
template <class... T>
bool typed(const ramway::tensor &t) {
    return ((t.as<T>().has_value() == (t.dtype() == ramway::element<T>::type)) && ...) &&
           ((!t.as<T>() || std::as_bytes(*t.as<T>()).data() == t.bytes().data()) && ...);
}

void check(const messages &all, std::uint64_t seq, const ramway::message &m) {
    const auto e = expect(seq);
    const auto t = m.tensor();
    if (!e) {
        if (t.code() != ramway::status::invalid_argument) throw bad_message(seq, "an ordinary message is a tensor");
        all.check(seq, m.type_id(), m.tag(), m.data());
        return;
    }
    if (!t) throw ramway::exception(t.error());
    if (t->dtype() != e->type) throw bad_message(seq, "the element type");
    if (!std::ranges::equal(t->shape(), e->shape)) throw bad_message(seq, "the shape");
    if (!std::ranges::equal(t->bytes(), e->data)) throw bad_message(seq, "the bytes");
    if (m.tag() != e->tag) throw bad_message(seq, "the tag");
    if (!typed<std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t, std::uint32_t,
               std::uint64_t, float, double, std::complex<float>, std::complex<double>, bool>(*t)) {
        throw bad_message(seq, "the elements by their type");
    }
    aligned(seq, t->bytes());
}

} // namespace

void tensors(const arguments &args) {
    const messages all("32", 32);
    if (args.producer()) {
        ends e(args, args.text("ring"), "");
        e.attached_sender();
        const auto count = args.number("count", 0);
        for (std::int64_t seq = 0; seq < count; seq++) send(e.tx, args, all, static_cast<std::uint64_t>(seq));
        say("sent count=" + std::to_string(count) + " next=" + std::to_string(count));
        e.close();
        return;
    }
    ends e(args, "", args.text("ring"));
    e.attached_receiver();
    for (std::uint64_t received = 0;; received++) {
        const auto m = args.limit() == ramway::forever ? e.rx.recv() : e.rx.recv_for(args.limit());
        if (!m) {
            say(std::string("end name=") + name_of(m.code()) + " number=" + std::to_string(static_cast<int>(m.code())) +
                " received=" + std::to_string(received));
            break;
        }
        check(all, received, *m);
    }
    e.close();
}
