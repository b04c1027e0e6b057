//! The counts for Prometheus: `GET /metrics`, in the text format of OpenMetrics.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE};
use hyper::{Method, Request, Response, StatusCode, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge};
use prometheus_client::registry::Unit;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, oneshot};

use crate::counters::Counters;
use crate::registry::Registry;

const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Of readers at a time; more of them wait.
const CONNECTIONS: usize = 16;
/// A reader that sends no request for this long, or does not take its answer, is let go.
const READER_TIME: Duration = Duration::from_secs(10);

/// Serves the metrics until it is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens on `address`; port 0 is any free one.
    ///
    /// # Errors
    /// Of listening: the address is taken, or is not of this machine.
    pub fn start(address: SocketAddr, registry: Arc<Registry>) -> io::Result<Self> {
        // Listens before this returns: a second bridge on the same port is told so at its start.
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name("metrics".into()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = serve(listener, registry) => {}
                    // Also when the sender is gone.
                    _ = stopped => {}
                }
            });
        })?;
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn serve(listener: std::net::TcpListener, registry: Arc<Registry>) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors, or the reader has left again: not in a tight loop.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let registry = Arc::clone(&registry);
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let answer = answer(&request, &registry);
                async move { Ok::<_, Infallible>(answer) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(READER_TIME)
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), service);
            // What becomes of one reader is nobody else's concern.
            let _ = tokio::time::timeout(2 * READER_TIME, connection).await;
            drop(place);
        });
    }
}

fn answer(request: &Request<Incoming>, registry: &Arc<Registry>) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::default());
    match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/metrics") => {
            answer.headers_mut().insert(CONTENT_TYPE, TYPE.parse().expect("a constant that is a header's value"));
            *answer.body_mut() = Full::from(text(registry));
        }
        (_, "/metrics") => {
            *answer.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
            answer.headers_mut().insert(ALLOW, "GET, HEAD".parse().expect("a constant that is a header's value"));
        }
        _ => {
            *answer.status_mut() = StatusCode::NOT_FOUND;
            *answer.body_mut() = Full::from("the metrics are at /metrics\n");
        }
    }
    answer
}

/// All metrics, as they are served.
#[must_use]
pub fn text(registry: &Arc<Registry>) -> String {
    let mut all = prometheus_client::registry::Registry::default();
    all.register_collector(Box::new(Exposed(Arc::clone(registry))));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &all).expect("a string takes everything");
    text
}

#[derive(Debug)]
struct Exposed(Arc<Registry>);

/// A metric that is one of the counts.
struct Count {
    name: &'static str,
    help: &'static str,
    unit: Option<Unit>,
    kind: MetricType,
    of: fn(&Counters) -> &AtomicU64,
}

fn counts() -> [Count; 20] {
    let (counter, gauge) = (MetricType::Counter, MetricType::Gauge);
    let count = |name, help, unit, kind, of| Count { name, help, unit, kind, of };
    [
        count("ramway_bridge_messages", "Messages that crossed", None, counter, |c| &c.messages),
        count("ramway_bridge_payload", "Payload of the messages that crossed", Some(Unit::Bytes), counter, |c| {
            &c.bytes
        }),
        count(
            "ramway_bridge_sent",
            "What was put on the link, repetitions included",
            Some(Unit::Bytes),
            counter,
            |c| &c.sent_bytes,
        ),
        count("ramway_bridge_streams", "Segments that are bridged, listeners included", None, gauge, |c| &c.streams),
        count("ramway_bridge_connected_streams", "Those of them whose far side answers", None, gauge, |c| &c.connected),
        count("ramway_bridge_connections", "Connections of a bus or RPC that are open", None, gauge, |c| {
            &c.connections
        }),
        count("ramway_bridge_opened_connections", "Connections that were made", None, counter, |c| &c.connected_ever),
        count(
            "ramway_bridge_refused_connections",
            "Connections that the other side refused, or that were too many",
            None,
            counter,
            |c| &c.refused_connections,
        ),
        count("ramway_bridge_unconfirmed", "What is under way and not confirmed", Some(Unit::Bytes), gauge, |c| {
            &c.in_flight
        }),
        count("ramway_bridge_unconfirmed_messages", "Messages of it that were sent whole", None, gauge, |c| {
            &c.unconfirmed
        }),
        count("ramway_bridge_window", "What may be under way and not confirmed", Some(Unit::Bytes), gauge, |c| {
            &c.window
        }),
        count(
            "ramway_bridge_backlog",
            "What the exported segment holds and the far side does not have",
            Some(Unit::Bytes),
            gauge,
            |c| &c.backlog,
        ),
        count(
            "ramway_bridge_resumes",
            "How often a stream began where the far side expected it to",
            None,
            counter,
            |c| &c.resumes,
        ),
        count("ramway_bridge_dropped_duplicates", "Repeated messages that were here already", None, counter, |c| {
            &c.duplicates_dropped
        }),
        count("ramway_bridge_possible_duplicates", "Messages that may be in the segment twice", None, counter, |c| {
            &c.possible_duplicates
        }),
        count("ramway_bridge_lost_messages", "Messages of lossy rules that were lost", None, counter, |c| &c.lost),
        count(
            "ramway_bridge_left_out_messages",
            "Messages that the rate or every of a rule left out",
            None,
            counter,
            |c| &c.left_out,
        ),
        count(
            "ramway_bridge_ejections",
            "How often a broken link made an export let its sender go",
            None,
            counter,
            |c| &c.ejected,
        ),
        count("ramway_bridge_endings", "How often an end was passed on", None, counter, |c| &c.ends),
        count(
            "ramway_bridge_refused_messages",
            "What came over the link and said what cannot be",
            None,
            counter,
            |c| &c.refused,
        ),
    ]
}

impl Collector for Exposed {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let streams: Vec<_> = self
            .0
            .all()
            .into_iter()
            .map(|(label, counters)| {
                let labels = [
                    ("direction", label.direction.word().to_owned()),
                    ("kind", label.kind.to_owned()),
                    ("name", label.name),
                    ("prefix", label.prefix),
                ];
                (labels, counters)
            })
            .collect();
        for Count { name, help, unit, kind, of } in counts() {
            let mut metric = encoder.encode_descriptor(name, help, unit.as_ref(), kind)?;
            for (labels, counters) in &streams {
                let value = of(counters).load(Relaxed);
                let encoder = metric.encode_family(labels)?;
                match kind {
                    MetricType::Counter => ConstCounter::new(value).encode(encoder)?,
                    _ => ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX)).encode(encoder)?,
                }
            }
        }
        let mut metric = encoder.encode_descriptor(
            "ramway_bridge_round_trip",
            "The last round trip to the far side",
            Some(&Unit::Seconds),
            MetricType::Gauge,
        )?;
        for (labels, counters) in &streams {
            let nanoseconds = counters.round_trip_ns.load(Relaxed);
            if nanoseconds > 0 {
                ConstGauge::new(nanoseconds as f64 / 1e9).encode(metric.encode_family(labels)?)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;
    use crate::config::Direction;
    use crate::counters::add;
    use crate::registry::Label;

    fn registry() -> Arc<Registry> {
        let registry = Arc::new(Registry::default());
        let prefix = "a\"b".to_owned();
        let label = Label { name: "camera".into(), kind: "topic", direction: Direction::Export, prefix };
        let counters = registry.stream(label);
        add(&counters.messages, 2);
        add(&counters.bytes, 1024);
        add(&counters.lost, 3);
        add(&counters.in_flight, 4096);
        counters.round_trip_ns.store(1_500_000, Relaxed);
        registry
    }

    fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn the_text_is_what_prometheus_reads() {
        let text = text(&registry());
        let labels = r#"{direction="export",kind="topic",name="camera",prefix="a\"b"}"#;
        for line in [
            format!("ramway_bridge_messages_total{labels} 2"),
            format!("ramway_bridge_payload_bytes_total{labels} 1024"),
            format!("ramway_bridge_unconfirmed_bytes{labels} 4096"),
            format!("ramway_bridge_lost_messages_total{labels} 3"),
            format!("ramway_bridge_resumes_total{labels} 0"),
            format!("ramway_bridge_round_trip_seconds{labels} 0.0015"),
            format!("ramway_bridge_connected_streams{labels} 0"),
            "# TYPE ramway_bridge_lost_messages counter".to_owned(),
            "# UNIT ramway_bridge_payload_bytes bytes".to_owned(),
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn it_is_served_and_nothing_else_is() {
        let registry = registry();
        let server = Server::start("127.0.0.1:0".parse().unwrap(), Arc::clone(&registry)).unwrap();
        let found = ask(server.address(), "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(found.starts_with("HTTP/1.1 200 OK\r\n"), "{found}");
        assert!(found.contains(TYPE) && found.ends_with(&text(&registry)), "{found}");
        assert!(ask(server.address(), "GET / HTTP/1.1\r\nHost: a\r\n\r\n").starts_with("HTTP/1.1 404"));
        assert!(ask(server.address(), "POST /metrics HTTP/1.1\r\nHost: a\r\n\r\n").starts_with("HTTP/1.1 405"));
        assert!(ask(server.address(), "nonsense\r\n\r\n").starts_with("HTTP/1.1 400"));
        // A port that is taken is said at once.
        assert_eq!(Server::start(server.address(), registry).unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn it_ends_with_a_reader_that_asks_nothing() {
        let server = Server::start("127.0.0.1:0".parse().unwrap(), registry()).unwrap();
        let mut idle = TcpStream::connect(server.address()).unwrap();
        drop(server);
        idle.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        assert!(matches!(idle.read(&mut [0]), Ok(0) | Err(_)));
    }

    #[test]
    fn a_stream_that_comes_again_goes_on_counting() {
        let registry = registry();
        let label = registry.all()[0].0.clone();
        assert_eq!(registry.stream(label).messages.load(Relaxed), 2);
    }
}
