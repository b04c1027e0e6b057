//! Tells the linker that the runtime brings the Node-API symbols.

fn main() {
    napi_build::setup();
}
