/* Where a view's bytes are, and single bytes by their address: what JavaScript cannot say, for `write`, `hold` and tensors.
 *
 * The few declarations of Node-API that this needs, whose ABI does not change, in place of a header that not every
 * machine has. Bun and Deno load it too. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct napi_env__ *napi_env;
typedef struct napi_value__ *napi_value;
typedef struct napi_callback_info__ *napi_callback_info;
typedef napi_value (*napi_callback)(napi_env, napi_callback_info);

extern int napi_get_cb_info(napi_env, napi_callback_info, size_t *, napi_value *, napi_value *, void **);
extern int napi_get_typedarray_info(napi_env, napi_value, int *, size_t *, void **, napi_value *, size_t *);
extern int napi_create_bigint_uint64(napi_env, uint64_t, napi_value *);
extern int napi_get_value_bigint_uint64(napi_env, napi_value, uint64_t *, bool *);
extern int napi_create_uint32(napi_env, uint32_t, napi_value *);
extern int napi_get_value_uint32(napi_env, napi_value, uint32_t *);
extern int napi_create_function(napi_env, const char *, size_t, napi_callback, void *, napi_value *);
extern int napi_set_named_property(napi_env, napi_value, const char *, napi_value);
extern int napi_throw_type_error(napi_env, const char *, const char *);

static napi_value refuse(napi_env env) {
    napi_throw_type_error(env, NULL, "wrong arguments");
    return NULL;
}

/* address(view: TypedArray): bigint */
static napi_value address(napi_env env, napi_callback_info info) {
    napi_value argument = NULL, result = NULL;
    size_t count = 1;
    void *data = NULL;
    if (napi_get_cb_info(env, info, &count, &argument, NULL, NULL) != 0 || count != 1 ||
        napi_get_typedarray_info(env, argument, NULL, NULL, &data, NULL, NULL) != 0) {
        return refuse(env);
    }
    napi_create_bigint_uint64(env, (uint64_t)(uintptr_t)data, &result);
    return result;
}

/* The byte at an address that `address` gave. Another process may write it at any time. */
static volatile uint8_t *byte_at(napi_env env, napi_value value) {
    uint64_t number = 0;
    bool exact = false;
    if (napi_get_value_bigint_uint64(env, value, &number, &exact) != 0 || !exact) return NULL;
    return (volatile uint8_t *)(uintptr_t)number;
}

/* peek(address: bigint): number */
static napi_value peek(napi_env env, napi_callback_info info) {
    napi_value argument = NULL, result = NULL;
    size_t count = 1;
    if (napi_get_cb_info(env, info, &count, &argument, NULL, NULL) != 0 || count != 1) return refuse(env);
    volatile uint8_t *byte = byte_at(env, argument);
    if (byte == NULL) return refuse(env);
    napi_create_uint32(env, *byte, &result);
    return result;
}

/* poke(address: bigint, value: number) */
static napi_value poke(napi_env env, napi_callback_info info) {
    napi_value arguments[2] = {NULL, NULL};
    size_t count = 2;
    uint32_t value = 0;
    if (napi_get_cb_info(env, info, &count, arguments, NULL, NULL) != 0 || count != 2) return refuse(env);
    volatile uint8_t *byte = byte_at(env, arguments[0]);
    if (byte == NULL || napi_get_value_uint32(env, arguments[1], &value) != 0) return refuse(env);
    *byte = (uint8_t)value;
    return NULL;
}

__attribute__((visibility("default"))) napi_value napi_register_module_v1(napi_env env, napi_value exports) {
    static const struct {
        const char *name;
        napi_callback call;
    } functions[] = {{"address", address}, {"peek", peek}, {"poke", poke}};
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        napi_value function = NULL;
        if (napi_create_function(env, functions[i].name, (size_t)-1, functions[i].call, NULL, &function) != 0 ||
            napi_set_named_property(env, exports, functions[i].name, function) != 0) {
            return NULL;
        }
    }
    return exports;
}
