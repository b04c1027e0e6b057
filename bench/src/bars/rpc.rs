//! What calls aim at.

use super::Run;
use crate::report::Bar;

pub(super) fn bars(run: &Run<'_>) -> Vec<Bar> {
    let what = "RPC: a call, 32 B, both polling";
    vec![
        run.time(what, "rpc-spin", "rpc", "bus", 1.2),
        run.time(what, "rpc-spin", "rpc", "iceoryx2-rpc", 0.3),
        run.time(what, "rpc-spin", "rpc", "tonic-unary", 0.05),
        run.time("RPC in Python: an awaited call, 32 B", "rpc-in-python", "rpc-async-python", "grpc-aio-python", 0.2),
        run.time("RPC in Go: a call, 32 B", "rpc-in-go", "rpc-go", "grpc-go", 0.1),
        run.below(
            "RPC in C#: a call of an inline handler, 32 B",
            "rpc-in-csharp",
            "rpc-inline-csharp",
            "≤ 10 µs",
            |figures| (format!("{:.1} µs", figures.ns.p50 / 1e3), figures.ns.p50 <= 1e4),
        ),
    ]
}
