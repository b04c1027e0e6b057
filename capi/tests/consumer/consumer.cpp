#include <ramway.hpp>

#include <iostream>

int main() {
    auto [tx, rx] = ramway::pair(4096).value();
    tx.send(1, std::string_view("built")).value();
    std::cout << rx.recv().value().text() << '\n';
}
