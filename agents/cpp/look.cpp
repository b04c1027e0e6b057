// read and show.
#include "program.hpp"

#include <algorithm>
#include <iostream>
#include <sstream>
#include <unistd.h>

using namespace std::chrono_literals;

static void end(ramway::status s) {
    say(std::string("end name=") + name_of(s) + " number=" + std::to_string(static_cast<int>(s)));
}

static void pause_if(const arguments &args) {
    std::string line;
    if (args.yes("pause")) std::getline(std::cin, line);
}

void read_back(const arguments &args) {
    if (args.has("region")) {
        const auto region = ramway::region::open(args.text("region"), {.timeout = 10s}).value();
        say("region len=" + std::to_string(region.data().size()) + " crc32=" + std::to_string(crc32(region.data())));
        say("closed");
        return;
    }
    if (args.producer()) {
        ends e(args, args.text("ring"), "");
        e.attached_sender();
        pause_if(args);
        const auto tag = e.tx.last_tag();
        say(tag ? "last tag=" + std::to_string(*tag) : "last none");
        const messages all(args.text("size", "0"), e.tx.max_message_len());
        const auto m = all[0];
        const auto outcome = e.tx.try_send(m.type_id, m.tag, m.data);
        if (outcome) say("sent");
        else end(outcome.code());
        e.close();
        return;
    }
    ends e(args, "", args.text("ring"));
    e.attached_receiver();
    pause_if(args);
    for (;;) {
        const auto m = args.limit() == ramway::forever ? e.rx.recv() : e.rx.recv_for(args.limit());
        if (!m) {
            end(m.code());
            break;
        }
        say("message type_id=" + std::to_string(m->type_id()) + " tag=" + std::to_string(m->tag()) + " len=" +
            std::to_string(m->size()) + " crc32=" + std::to_string(crc32(m->data())));
    }
    e.close();
}

constexpr std::size_t shown = 4096;

// Writes and reads single bytes of the message by its address, as standard input says.
static void obey(volatile std::byte *address) {
    std::ostringstream view;
    view << "view addr=" << const_cast<const std::byte *>(address) << " len=" << shown << " pid=" << getpid();
    say(view.str());
    std::string line, word;
    while (std::getline(std::cin, line)) {
        std::istringstream words(line);
        std::size_t offset = 0;
        int value = 0;
        words >> word >> offset;
        if (offset >= shown) return;
        if (word == "poke" && words >> value) {
            address[offset] = static_cast<std::byte>(value);
            say("poked");
        } else if (word == "peek") {
            say("byte value=" + std::to_string(static_cast<int>(address[offset])));
        } else {
            return;
        }
    }
}

void show(const arguments &args) {
    if (args.producer()) {
        ends e(args, args.text("ring"), "");
        e.attached_sender();
        auto slot = e.tx.reserve(shown).value();
        const auto data = slot.data();
        std::ranges::fill(data, std::byte{0x11});
        std::move(slot).commit(shown).value();
        obey(data.data());
        e.close();
        return;
    }
    ends e(args, "", args.text("ring"));
    e.attached_receiver();
    {
        const auto m = e.rx.recv().value();
        obey(const_cast<std::byte *>(m.data().data()));
    }
    e.close();
}
