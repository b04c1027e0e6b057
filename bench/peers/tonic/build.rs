//! Generates client and server from a description in Rust: the one that `protoc` would make of a `.proto` file with one
//! message of one `bytes` field and one method that streams both ways.

#[path = "../version.rs"]
mod version;

fn main() {
    version::main();
    let method = tonic_build::manual::Method::builder()
        .name("talk")
        .route_name("Talk")
        .input_type("crate::Message")
        .output_type("crate::Message")
        .codec_path("tonic_prost::ProstCodec")
        .client_streaming()
        .server_streaming()
        .build();
    let service = tonic_build::manual::Service::builder().name("Peer").package("bench").method(method).build();
    tonic_build::manual::Builder::new().compile(&[service]);
}
