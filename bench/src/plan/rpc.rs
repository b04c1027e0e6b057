//! Calls: Ramway's RPC beside messages over a bus, and beside other libraries' requests and replies.

use super::{GroupPlan, capacity_for, group, of};
use crate::case::{Burst, Mode, Test};

/// Other libraries' requests and replies, of `bench/peers`.
pub(crate) const CALLERS: &str = "iceoryx2-rpc tachyon-rpc zmq-req tonic-unary";
/// Who is compared: RPC, and the same messages without calls.
const CANDIDATES: &str = "rpc bus uds";

pub(super) fn groups() -> Vec<GroupPlan> {
    let call = |mode, size| of(Test::Call, mode, size);
    let many = Burst { batch: 64, ..call(Mode::Hybrid, 32) };
    let all = |id: &str, what: &str, burst: Burst| {
        let plan = group(id, &format!("RPC: {what}"), burst).or_asleep();
        plan.among(CANDIDATES).among(CALLERS).capacity(capacity_for(burst.size)).floor("bus")
    };
    vec![
        all("rpc-spin", "a call, 32 B there and back, both sides polling", call(Mode::Spin, 32)),
        all("rpc-hybrid", "a call, 32 B there and back, polling a while, then asleep", call(Mode::Hybrid, 32)),
        all("rpc-block", "a call, 32 B there and back, asleep at once", call(Mode::Block, 32)),
        all("rpc-1K", "a call, 32 B there and 1 KiB back, both sides polling", call(Mode::Spin, 1 << 10)),
        all("rpc-1M", "a call, 32 B there and 1 MiB back, both sides polling", call(Mode::Spin, 1 << 20)),
        all("rpc-64", "64 calls under way, 32 B there and back", many),
    ]
}
