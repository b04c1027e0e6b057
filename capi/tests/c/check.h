/* What the test programs share. */
#ifndef CHECK_H
#define CHECK_H

#include "ramway.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program: what follows a failed check would only confuse. */
#define CHECK(condition)                                                                                      \
    do {                                                                                                      \
        if (!(condition)) {                                                                                   \
            fprintf(stderr, "%s:%d: %s\n  last error: %s\n", __FILE__, __LINE__, #condition,                   \
                    ramway_last_error());                                                                     \
            exit(1);                                                                                          \
        }                                                                                                     \
    } while (0)

#define CHECK_STATUS(call, expected)                                                                          \
    do {                                                                                                      \
        int found_ = (int)(call);                                                                             \
        if (found_ != (int)(expected)) {                                                                      \
            fprintf(stderr, "%s:%d: %s\n  is %s, expected %s\n  last error: %s\n", __FILE__, __LINE__, #call,  \
                    ramway_status_name(found_), ramway_status_name((int)(expected)), ramway_last_error());    \
            exit(1);                                                                                          \
        }                                                                                                     \
    } while (0)

#define CHECK_OK(call) CHECK_STATUS(call, RAMWAY_OK)

#endif
