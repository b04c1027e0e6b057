#include <ramway_inline.h>

#include <stdio.h>
#include <string.h>

int main(void) {
    ramway_sender *tx;
    ramway_receiver *rx;
    ramway_message m;
    if (ramway_ring_pair(4096, &tx, &rx) != RAMWAY_OK ||
        ramway_inline_send(tx, 1, 2, "built", 5, RAMWAY_FOREVER) != RAMWAY_OK ||
        ramway_inline_recv(rx, RAMWAY_FOREVER, &m) != RAMWAY_OK || memcmp(m.data, "built", 5) != 0) {
        fprintf(stderr, "%s\n", ramway_last_error());
        return 1;
    }
    printf("ramway %s\n", ramway_version());
    ramway_receiver_close(rx);
    ramway_sender_close(tx);
    return 0;
}
