// open topic=.
#include "agent.hpp"

// Where a subscriber begins: `from`.
static ramway::start begins(const std::string &from) {
    const auto colon = from.find(':');
    const auto place = from.substr(0, colon);
    const auto number = colon == std::string::npos ? 0 : std::stoull(from.substr(colon + 1));
    if (place.empty()) return {};
    if (place == "oldest") return ramway::from_oldest;
    if (place == "now") return ramway::from_now;
    if (place == "history") return ramway::history(number);
    if (place == "after") return ramway::after_seq(number);
    throw refused("from=" + from);
}

static ramway::policy policy_of(const std::string &text) {
    if (text == "reliable") return ramway::policy::reliable;
    if (text == "lossy") return ramway::policy::lossy;
    if (text == "latest") return ramway::policy::latest;
    throw refused("policy=" + text);
}

void open_topic(ends &e, line &line, const std::string &name, bool consumer) {
    const auto eject_after = line.number("eject_after", 0), wait_for = line.number("wait_for", -1);
    const bool create = line.yes("create");
    ramway::topic_options o;
    o.wait = line.wait();
    o.policy = policy_of(line.text("policy", "reliable"));
    o.start = begins(line.text("from"));
    o.label = line.text("label");
    o.durable = line.yes("durable");
    o.eject_after = std::chrono::milliseconds(eject_after);
    o.timeout = std::chrono::milliseconds(line.number("timeout", std::chrono::milliseconds(open_timeout).count()));
    if (create) {
        o.capacity = static_cast<std::uint64_t>(line.number("capacity", 65536));
        o.align = static_cast<std::uint32_t>(line.number("align", 32));
    }
    line.end();
    if (consumer) {
        if (wait_for >= 0) throw refused("wait_for is a producer's");
        e.sub = (create ? ramway::subscriber::create(name, o) : ramway::subscriber::open(name, o)).value();
        return;
    }
    e.pub = (create ? ramway::publisher::create(name, o) : ramway::publisher::open(name, o)).value();
    if (wait_for >= 0) e.pub.wait_for_subscribers(static_cast<std::size_t>(wait_for), open_timeout).value();
}
