//! Generates client and server from a description in Rust: the one that `protoc` would make of a `.proto` file with one
//! message of one `bytes` field, one method that streams both ways, and one with a request and a reply.

#[path = "../version.rs"]
mod version;

fn main() {
    version::main();
    let talk = tonic_build::manual::Method::builder()
        .name("talk")
        .route_name("Talk")
        .input_type("crate::Message")
        .output_type("crate::Message")
        .codec_path("tonic_prost::ProstCodec")
        .client_streaming()
        .server_streaming()
        .build();
    let ask = tonic_build::manual::Method::builder()
        .name("ask")
        .route_name("Ask")
        .input_type("crate::Message")
        .output_type("crate::Message")
        .codec_path("tonic_prost::ProstCodec")
        .build();
    let service = |name, method| tonic_build::manual::Service::builder().name(name).package("bench").method(method).build();
    tonic_build::manual::Builder::new().compile(&[service("Peer", talk), service("Answers", ask)]);
}
