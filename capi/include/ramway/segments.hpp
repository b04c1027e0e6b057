/// What is there: listed, removed by name, cleaned. Part of ramway.hpp.
#ifndef RAMWAY_SEGMENTS_HPP
#define RAMWAY_SEGMENTS_HPP

#include "../ramway.h"
#include "result.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ramway {

/// A file of the Ramway directory: see ramway_segment.
struct segment {
    std::string name;
    std::string path;
    /// status::ok, or why it cannot be read as a segment; the rest is 0 then.
    ramway::status status = ramway::status::ok;
    std::string error;
    /// RAMWAY_KIND_RING and its siblings.
    std::uint32_t kind = 0;
    std::uint32_t align = 0;
    std::uint64_t size = 0;
    std::uint64_t capacity = 0;
    std::uint64_t used = 0;
    std::uint64_t undelivered = 0;
    bool in_use = false;
    bool persistent = false;
    bool stale = false;
    bool producer_held = false;
    bool consumer_held = false;
};

/// What clean did, or would do, with a file.
struct cleaned {
    std::string name;
    /// RAMWAY_CLEAN_REMOVED and its siblings.
    std::uint32_t outcome = 0;
    std::string why;
};

/// The segments of a directory; empty: where names stand. See ramway_ls.
inline result<std::vector<segment>> ls(const std::string &directory = {}) {
    std::vector<segment> all;
    // Nothing may unwind through C.
    const auto each = [](const ramway_segment *s, void *user) noexcept {
        static_cast<std::vector<segment> *>(user)->push_back(
            {s->name, s->path, static_cast<ramway::status>(s->status), s->error != nullptr ? s->error : "", s->kind,
             s->align, s->size, s->capacity, s->used, s->undelivered, s->in_use, s->persistent, s->stale,
             s->producer_held, s->consumer_held});
    };
    const auto code = ramway_ls(directory.empty() ? nullptr : directory.c_str(), each, &all);
    return code == RAMWAY_OK ? result<std::vector<segment>>(std::move(all)) : result<std::vector<segment>>(error(code));
}

/// Removes a segment that nobody uses, whatever it holds. See ramway_unlink.
inline result<void> unlink(const std::string &name) { return detail::outcome(ramway_unlink(name.c_str())); }

/// Removes what nobody uses and nobody could want; `undelivered`: also what somebody could. See ramway_clean.
inline result<std::vector<cleaned>> clean(const std::string &directory = {}, bool undelivered = false,
                                          bool dry_run = false) {
    std::vector<cleaned> all;
    const auto each = [](const char *name, std::uint32_t outcome, const char *why, void *user) noexcept {
        static_cast<std::vector<cleaned> *>(user)->push_back({name, outcome, why != nullptr ? why : ""});
    };
    const std::uint32_t flags = (undelivered ? RAMWAY_CLEAN_UNDELIVERED : 0u) | (dry_run ? RAMWAY_CLEAN_DRY_RUN : 0u);
    const auto code = ramway_clean(directory.empty() ? nullptr : directory.c_str(), flags, each, &all);
    return code == RAMWAY_OK ? result<std::vector<cleaned>>(std::move(all)) : result<std::vector<cleaned>>(error(code));
}

}  // namespace ramway

#endif
