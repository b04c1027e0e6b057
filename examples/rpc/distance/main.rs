//! A method that takes a point and gives its distance from the origin, in each encoding of the guide (docs/guides/rpc-encodings.md), which
//! shows these files. Those in other languages stand in the guide alone: a test runs all with each other.

mod flat;
mod own;
mod plain;
mod proto;

use ramway::rpc::{Client, Server};
use std::error::Error;
use std::process::ExitCode;

const USAGE: &str = "usage: distance serve plain|own|proto|flat NAME | distance ask plain|own|proto|flat NAME X Y";

fn main() -> ExitCode {
    ramway_examples::run("distance", |arguments| match arguments {
        ["serve", encoding, name] => serve(encoding, name),
        ["ask", encoding, name, x, y] => ask(encoding, name, x.parse()?, y.parse()?),
        _ => Err(USAGE.into()),
    })
}

fn serve(encoding: &str, name: &str) -> Result<(), Box<dyn Error>> {
    let mut server = Server::bind(name)?;
    match encoding {
        "plain" => server.method("Point.Distance", |request| plain::distance(request))?,
        "own" => server.method("Point.Distance", |request| own::distance(request))?,
        "proto" => server.method("Point.Distance", |request| proto::distance(request))?,
        "flat" => server.method("Point.Distance", |request| flat::distance(request))?,
        _ => return Err(USAGE.into()),
    }
    Ok(server.run()?)
}

fn ask(encoding: &str, name: &str, x: f64, y: f64) -> Result<(), Box<dyn Error>> {
    let mut client = Client::connect(name)?;
    let distance = match encoding {
        "plain" => plain::ask(&mut client, x, y)?,
        "own" => own::ask(&mut client, x, y)?,
        "proto" => proto::ask(&mut client, x, y)?,
        "flat" => flat::ask(&mut client, x, y)?,
        _ => return Err(USAGE.into()),
    };
    println!("{distance}");
    Ok(())
}
