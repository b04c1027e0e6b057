//! FlatBuffers.

// guide: flat
use flatbuffers::{FlatBufferBuilder, InvalidFlatbuffer, Vector};
use ramway::rpc::{Client, Fault, Request, method_id};
use std::error::Error;

fn read(bytes: &[u8]) -> Result<Vector<'_, f64>, InvalidFlatbuffer> {
    flatbuffers::root::<Vector<'_, f64>>(bytes)
}

fn write(values: &[f64]) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let root = builder.create_vector(values);
    builder.finish_minimal(root);
    builder.finished_data().to_vec()
}

pub fn distance(request: &Request<'_>) -> Result<Vec<u8>, Fault> {
    let point = read(request.body()).map_err(|error| Fault::new(1, error.to_string()))?;
    Ok(write(&[point.iter().map(|value| value * value).sum::<f64>().sqrt()]))
}

pub fn ask(client: &mut Client, x: f64, y: f64) -> Result<f64, Box<dyn Error>> {
    let reply = client.call(method_id("Point.Distance"), &write(&[x, y]))?;
    Ok(read(reply.body())?.get(0))
}
// guide: end
