//! serde and postcard.

// guide: own
use ramway::rpc::{Client, Fault, Request, method_id};
use serde::{Deserialize, Serialize};
use std::error::Error;

#[derive(Serialize, Deserialize)]
struct Point {
    x: f64,
    y: f64,
}

pub fn distance(request: &Request<'_>) -> Result<Vec<u8>, Fault> {
    let wrong = |error: postcard::Error| Fault::new(1, error.to_string());
    let point: Point = postcard::from_bytes(request.body()).map_err(wrong)?;
    postcard::to_allocvec(&point.x.hypot(point.y)).map_err(wrong)
}

pub fn ask(client: &mut Client, x: f64, y: f64) -> Result<f64, Box<dyn Error>> {
    let request = postcard::to_allocvec(&Point { x, y })?;
    let reply = client.call(method_id("Point.Distance"), &request)?;
    Ok(postcard::from_bytes(reply.body())?)
}
// guide: end
