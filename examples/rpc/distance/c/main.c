/* Runs a program of the guide on encodings (docs/guides/rpc-encodings.md), which has `distance` and `ask`: the test puts it beside
 * this file. `distance serve NAME` | `distance ask NAME X Y` */
#include "plain.c"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    ramway_rpc_server *server = NULL;
    ramway_rpc_client *client = NULL;
    ramway_status status;
    double reply = 0;
    if (argc == 3) {
        status = ramway_rpc_server_bind(argv[2], NULL, &server);
        if (status == RAMWAY_OK) status = ramway_rpc_server_method(server, ramway_rpc_method_id("Point.Distance"), NULL, distance, NULL);
        if (status == RAMWAY_OK) status = ramway_rpc_server_run(server, RAMWAY_FOREVER);
    } else {
        status = ramway_rpc_connect(argv[2], NULL, &client);
        if (status == RAMWAY_OK) status = ask(client, strtod(argv[3], NULL), strtod(argv[4], NULL), &reply);
        if (status == RAMWAY_OK) printf("%g\n", reply);
        ramway_rpc_close(client);
    }
    if (status != RAMWAY_OK) fprintf(stderr, "%s\n", ramway_last_error());
    return status != RAMWAY_OK;
}
