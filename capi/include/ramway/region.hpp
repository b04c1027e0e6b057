/// Named shared bytes. Part of ramway.hpp.
#ifndef RAMWAY_REGION_HPP
#define RAMWAY_REGION_HPP

#include "../ramway.h"
#include "options.hpp"
#include "result.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

namespace ramway {

/// Named bytes that any number of processes have mapped, with notify and wait. May be shared by threads.
class region {
  public:
    static result<region> create(const std::string &name, std::uint64_t len, const options &o = {}) {
        ramway_region *out = nullptr;
        const ramway_options c = o.c();
        const auto code = ramway_region_create(name.c_str(), len, &c, &out);
        return give(code, out);
    }
    static result<region> open(const std::string &name, const options &o = {}) {
        ramway_region *out = nullptr;
        const ramway_options c = o.c();
        const auto code = ramway_region_open(name.c_str(), &c, &out);
        return give(code, out);
    }
    static result<region> open_or_create(const std::string &name, std::uint64_t len, const options &o = {}) {
        ramway_region *out = nullptr;
        const ramway_options c = o.c();
        const auto code = ramway_region_open_or_create(name.c_str(), len, &c, &out);
        return give(code, out);
    }

    /// The bytes; not to be written through a read-only handle. Their order among processes is the user's to make.
    std::span<std::byte> data() const noexcept {
        return {static_cast<std::byte *>(ramway_region_data(get())), static_cast<std::size_t>(len())};
    }
    std::uint64_t len() const noexcept { return ramway_region_len(get()); }
    bool is_read_only() const noexcept { return ramway_region_is_read_only(get()); }
    result<void> read_at(std::uint64_t offset, std::span<std::byte> to) const {
        return detail::outcome(ramway_region_read_at(get(), offset, to.data(), to.size()));
    }
    result<void> write_at(std::uint64_t offset, bytes from) const {
        return detail::outcome(ramway_region_write_at(get(), offset, from.data(), from.size()));
    }
    /// The value at `offset` as an atomic that all processes share; invalid_argument if it is not aligned or outside,
    /// permission_denied on a read-only handle.
    template <class T>
        requires std::is_trivially_copyable_v<T> && std::atomic_ref<T>::is_always_lock_free
    result<std::atomic_ref<T>> atomic(std::uint64_t offset) const {
        if (offset % std::atomic_ref<T>::required_alignment != 0 || len() < sizeof(T) || offset > len() - sizeof(T)) {
            return error(status::invalid_argument, "no aligned atomic at offset " + std::to_string(offset));
        }
        if (is_read_only()) {
            return error(status::permission_denied, "an atomic of a region that was opened read-only");
        }
        return std::atomic_ref<T>(*reinterpret_cast<T *>(data().data() + offset));
    }
    result<void> notify() const { return detail::outcome(ramway_region_notify(get())); }
    /// Waits for a notification since the last wait that succeeded; status::timed_out, status::empty for a time of 0.
    result<void> wait(std::chrono::nanoseconds timeout = forever) const {
        return detail::outcome(ramway_region_wait(get(), detail::ns(timeout)));
    }
    result<void> try_wait() const { return detail::outcome(ramway_region_wait(get(), detail::now)); }
    /// For event loops: readable when try_wait would succeed. Ours to close.
    result<int> readiness_fd() const { return detail::descriptor(ramway_region_readiness_fd(get())); }
    /// For calls of ramway.h; stays ours.
    ramway_region *get() const noexcept { return handle_.get(); }

  private:
    region() = default;
    static result<region> give(ramway_status code, ramway_region *handle) {
        if (code != RAMWAY_OK) {
            return error(code);
        }
        region made;
        made.handle_.reset(handle);
        return made;
    }

    detail::handle<ramway_region, ramway_region_close> handle_;
};

}  // namespace ramway

#endif
