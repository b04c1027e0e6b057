//! Plain structs.

// guide: plain
use bytemuck::{Pod, Zeroable};
use ramway::rpc::{Client, Fault, Request, method_id};
use std::error::Error;

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Point {
    x: f64,
    y: f64,
}

pub fn distance(request: &Request<'_>) -> Result<[u8; 8], Fault> {
    let point: Point = bytemuck::try_pod_read_unaligned(request.body())
        .map_err(|_| Fault::new(1, "expected the 16 bytes of a point"))?;
    Ok(point.x.hypot(point.y).to_le_bytes())
}

pub fn ask(client: &mut Client, x: f64, y: f64) -> Result<f64, Box<dyn Error>> {
    let reply = client.call(method_id("Point.Distance"), bytemuck::bytes_of(&Point { x, y }))?;
    Ok(f64::from_le_bytes(reply.body().try_into()?))
}
// guide: end
