/// Tensors: elements with their type and shape. Part of ramway.hpp.
#ifndef RAMWAY_TENSOR_HPP
#define RAMWAY_TENSOR_HPP

#include "../ramway_inline.h"
#include "result.hpp"

#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#if __has_include(<stdfloat>)
#include <stdfloat>
#endif

namespace ramway {

namespace detail {
template <class Self, class Calls>
class sending;
}  // namespace detail

/// What a tensor's elements are: DLPack's type code and the bits of one element.
struct dtype {
    std::uint8_t code;
    std::uint8_t bits;

    friend constexpr bool operator==(dtype, dtype) = default;
    constexpr ramway_dtype c() const noexcept { return {code, bits}; }
};

/// The dtype of a C++ type, as `static constexpr dtype type`. Here for the integers, float, double, their std::complex,
/// bool, and where the compiler has them std::float16_t and std::bfloat16_t. To be specialised for a type of your own
/// whose bytes are those of one element:
///
///     template <> struct ramway::element<my_bfloat16> { static constexpr dtype type{RAMWAY_DTYPE_BFLOAT, 16}; };
///
/// bool: a byte of the peer's that is neither 0 nor 1 is no bool. Read those of one that is not trusted as
/// tensor::bytes().
template <class T>
struct element;
template <class T>
    requires(std::integral<T> && !std::same_as<T, bool> && sizeof(T) <= 8)
struct element<T> {
    static constexpr dtype type{std::is_signed_v<T> ? std::uint8_t{RAMWAY_DTYPE_INT} : std::uint8_t{RAMWAY_DTYPE_UINT},
                                sizeof(T) * 8};
};
template <>
struct element<bool> {
    static constexpr dtype type{RAMWAY_DTYPE_BOOL, 8};
};
template <>
struct element<float> {
    static constexpr dtype type{RAMWAY_DTYPE_FLOAT, 32};
};
template <>
struct element<double> {
    static constexpr dtype type{RAMWAY_DTYPE_FLOAT, 64};
};
template <>
struct element<std::complex<float>> {
    static constexpr dtype type{RAMWAY_DTYPE_COMPLEX, 64};
};
template <>
struct element<std::complex<double>> {
    static constexpr dtype type{RAMWAY_DTYPE_COMPLEX, 128};
};
#ifdef __STDCPP_FLOAT16_T__
template <>
struct element<std::float16_t> {
    static constexpr dtype type{RAMWAY_DTYPE_FLOAT, 16};
};
#endif
#ifdef __STDCPP_BFLOAT16_T__
template <>
struct element<std::bfloat16_t> {
    static constexpr dtype type{RAMWAY_DTYPE_BFLOAT, 16};
};
#endif

/// A type that has an ramway::element.
template <class T>
concept tensor_element = std::is_trivially_copyable_v<T> && requires {
    requires std::same_as<std::remove_cvref_t<decltype(element<T>::type)>, dtype>;
    requires element<T>::type.bits == 8 * sizeof(T);
};

/// The dimensions of a tensor as an argument, the outermost first: `{480, 640, 3}`, or any array of std::uint64_t.
class shape {
  public:
    shape(std::initializer_list<std::uint64_t> dims) : shape(dims.begin(), dims.size()) {}
    template <std::ranges::contiguous_range R>
        requires(std::ranges::sized_range<R> && std::same_as<std::ranges::range_value_t<R>, std::uint64_t> &&
                 !std::same_as<std::remove_cvref_t<R>, shape>)
    shape(const R &dims) : shape(std::ranges::data(dims), std::ranges::size(dims)) {}

    const std::uint64_t *data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }

  private:
    shape(const std::uint64_t *data, std::size_t size) : data_(data), size_(size) {}

    const std::uint64_t *data_;
    std::size_t size_;
};

/// A received tensor: type and shape are copies, the elements a view of its message.
class tensor {
  public:
    /// Reads a message; invalid_argument if it is no tensor.
    static result<tensor> of(const ramway_message &message) {
        tensor made;
        auto code = ramway_message_tensor(&message, &made.c_);
        return code == RAMWAY_OK ? result<tensor>(made) : result<tensor>(error(code));
    }

    ramway::dtype dtype() const noexcept { return {c_.dtype.code, c_.dtype.bits}; }
    /// The dimensions, the outermost first. As long as this object.
    std::span<const std::uint64_t> shape() const & noexcept { return {c_.shape, c_.ndim}; }
    std::span<const std::uint64_t> shape() const && = delete;
    /// The elements' bytes, in C order: the last dimension varies fastest.
    std::span<const std::byte> bytes() const noexcept { return {static_cast<const std::byte *>(c_.data), c_.nbytes}; }
    /// The elements in C order, in place; invalid_argument if they are of another type.
    template <tensor_element T>
    result<std::span<const T>> as() const {
        if (dtype() != element<T>::type) {
            return error(status::invalid_argument,
                         "a tensor of " + text(dtype()) + " read as elements of " + text(element<T>::type));
        }
        if (reinterpret_cast<std::uintptr_t>(c_.data) % alignof(T) != 0) {
            return error(status::invalid_argument, "a tensor's elements lie where those of its type cannot");
        }
        return std::span<const T>(static_cast<const T *>(c_.data), c_.nbytes / sizeof(T));
    }

  private:
    static std::string text(ramway::dtype type) {
        return "code " + std::to_string(type.code) + " with " + std::to_string(type.bits) + " bits";
    }

    ramway_tensor c_{};
};

/// Room for the elements of one tensor, to be written in place; begins on a multiple of 64 bytes. Aborts when it goes
/// out of scope uncommitted. Must not outlive its sender.
template <class T>
class tensor_slot {
  public:
    tensor_slot(tensor_slot &&other) noexcept : sender_(std::exchange(other.sender_, nullptr)), data_(other.data_) {}
    tensor_slot &operator=(tensor_slot &&) = delete;
    ~tensor_slot() {
        if (sender_ != nullptr) {
            (void)ramway_inline_abort(sender_);
        }
    }

    /// The elements, in C order; whatever an earlier message left there.
    std::span<T> data() const noexcept { return data_; }
    /// Sends the tensor, visible at once.
    result<void> commit(std::uint64_t tag = 0) && { return done(ramway_commit_tensor(sender_, tag)); }
    /// Visible only with the next flush or flushed message.
    result<void> commit_unflushed(std::uint64_t tag = 0) && { return done(ramway_commit_tensor_unflushed(sender_, tag)); }

  private:
    template <class, class>
    friend class detail::sending;
    tensor_slot(ramway_sender *sender, void *data, std::size_t nbytes)
        : sender_(sender), data_(static_cast<T *>(data), nbytes / sizeof(T)) {}
    result<void> done(ramway_status code) {
        if (code == RAMWAY_OK) [[likely]] {
            sender_ = nullptr;
            return {};
        }
        return error(code);
    }

    ramway_sender *sender_;
    std::span<T> data_;
};

}  // namespace ramway

#endif
