//! Calls: Ramway's RPC beside messages over a bus, and beside other libraries' requests and replies.

use super::{GroupPlan, MIB, group, of};
use crate::case::{Burst, Mode, REQUEST, Test};

/// Other libraries' requests and replies, of `bench/peers`.
pub(crate) const CALLERS: &str = "iceoryx2-rpc tachyon-rpc zmq-req tonic-unary";
/// Calls between two processes of another language, Ramway's and the language's own gRPC.
pub(crate) const IN_LANGUAGES: &str = "\
    rpc-python rpc-async-python grpc-aio-python grpc-python rpc-go rpc-inline-go grpc-go rpc-java rpc-inline-java grpc-java \
    rpc-csharp rpc-inline-csharp rpc-async-csharp rpc-node grpc-node";
/// Who is compared: RPC, and the same messages without calls.
const CANDIDATES: &str = "rpc rpc-in-place bus uds";

pub(super) fn groups() -> Vec<GroupPlan> {
    let call = |mode, size| of(Test::Call, mode, size);
    let many = Burst { batch: 64, ..call(Mode::Hybrid, 32) };
    let all = |id: &str, what: &str, burst: Burst| {
        let plan = group(id, &format!("RPC: {what}"), burst).or_asleep();
        // Twice the longest reply, as the guide says, where that is more than what a server has by default.
        plan.among(CANDIDATES).among(CALLERS).capacity(MIB.max(2 * burst.size as u64)).floor("bus")
    };
    // What a user gets by default, beside the same between two processes of Rust.
    let within = |id: &str, language: &str, rows: &str| {
        let plan = group(id, &format!("{language}: a call, 32 B there and back"), call(Mode::Hybrid, REQUEST));
        plan.or_asleep().among("rpc").among(rows).floor("rpc")
    };
    vec![
        all("rpc-spin", "a call, 32 B there and back, both sides polling", call(Mode::Spin, 32)),
        all("rpc-hybrid", "a call, 32 B there and back, polling a while, then asleep", call(Mode::Hybrid, 32)),
        all("rpc-block", "a call, 32 B there and back, asleep at once", call(Mode::Block, 32)),
        all("rpc-1K", "a call, 32 B there and 1 KiB back, both sides polling", call(Mode::Spin, 1 << 10)),
        all("rpc-1M", "a call, 32 B there and 1 MiB back, both sides polling", call(Mode::Spin, 1 << 20)),
        all("rpc-64", "64 calls under way, 32 B there and back", many),
        within("rpc-in-python", "Python", "rpc-python rpc-async-python grpc-aio-python grpc-python"),
        within("rpc-in-go", "Go", "rpc-go rpc-inline-go grpc-go"),
        within("rpc-in-java", "Java", "rpc-java rpc-inline-java grpc-java"),
        within("rpc-in-csharp", "C#", "rpc-csharp rpc-inline-csharp rpc-async-csharp"),
        within("rpc-in-node", "Node.js", "rpc-node grpc-node"),
    ]
}
