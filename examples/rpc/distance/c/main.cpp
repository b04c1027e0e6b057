// Runs a program of the guide on encodings (docs/guides/rpc-encodings.md), which has `distance` and `ask`: the test puts it beside
// this file. `distance serve NAME` | `distance ask NAME X Y`
#include "plain.cpp"

#include <cstdlib>
#include <iostream>

int main(int argc, char **argv) {
    if (argc == 3) {
        auto server = ramway::rpc::server::bind(argv[2]).value();
        server.method("Point.Distance", distance).value();
        server.run().value();
    } else {
        auto client = ramway::rpc::client::connect(argv[2]).value();
        std::cout << ask(client, std::strtod(argv[3], nullptr), std::strtod(argv[4], nullptr)) << '\n';
    }
}
