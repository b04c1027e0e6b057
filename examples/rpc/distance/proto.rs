//! Protocol Buffers.

// guide: proto
use prost::Message;
use ramway::rpc::{Client, Fault, Request, method_id};
use std::error::Error;

#[derive(Clone, PartialEq, Message)]
struct Point {
    #[prost(double, tag = "1")]
    x: f64,
    #[prost(double, tag = "2")]
    y: f64,
}

#[derive(Clone, PartialEq, Message)]
struct Distance {
    #[prost(double, tag = "1")]
    value: f64,
}

pub fn distance(request: &Request<'_>) -> Result<Vec<u8>, Fault> {
    let point = Point::decode(request.body()).map_err(|error| Fault::new(1, error.to_string()))?;
    Ok(Distance { value: point.x.hypot(point.y) }.encode_to_vec())
}

pub fn ask(client: &mut Client, x: f64, y: f64) -> Result<f64, Box<dyn Error>> {
    let reply = client.call(method_id("Point.Distance"), &Point { x, y }.encode_to_vec())?;
    Ok(Distance::decode(reply.body())?.value)
}
// guide: end
