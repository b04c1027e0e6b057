//! tonic: gRPC over HTTP/2 on a Unix socket, Protocol Buffers by prost, one call that streams both ways for as long as
//! the pair lives: a call for each round trip would send headers and trailers as well. A runtime of one worker
//! thread, which moves the bytes; the thread that measures hands over and takes messages, and sleeps meanwhile. Windows
//! and frames are as large as what is sent; without a copy where it offers that (`Bytes`).

mod unary;

use bytes::{Bytes, BytesMut};
use ramway_bench::{About, Burst, Channel, End, Failure, Kind, Mechanism, Mode, Prepared, Setup};
use std::future::{Future, poll_fn};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Mutex;
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::net::UnixListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, oneshot};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::{ReceiverStream, UnixListenerStream};
use tonic::transport::{Endpoint, Server};
use tonic::{Request, Response, Status, Streaming};

type Result<T> = std::result::Result<T, Failure>;

#[global_allocator]
static ALLOCATOR: ramway_bench::CountingAllocator = ramway_bench::CountingAllocator;

/// What is sent.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Message {
    /// The payload.
    #[prost(bytes = "bytes", tag = "1")]
    pub bytes: Bytes,
}

#[allow(missing_docs)]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/bench.Peer.rs"));
    include!(concat!(env!("OUT_DIR"), "/bench.Answers.rs"));
}
use generated::{peer_client::PeerClient, peer_server};

struct Tonic;

struct Pair {
    tx: mpsc::Sender<Message>,
    rx: Streaming<Message>,
    out: BytesMut,
    runtime: Runtime,
}

/// The following process's part of the one call.
struct Talk(Mutex<Option<Ends>>);

struct Ends {
    outgoing: mpsc::Receiver<Message>,
    incoming: oneshot::Sender<Streaming<Message>>,
}

type Outgoing = std::pin::Pin<Box<dyn tokio_stream::Stream<Item = std::result::Result<Message, Status>> + Send>>;

#[tonic::async_trait]
impl peer_server::Peer for Talk {
    type TalkStream = Outgoing;

    async fn talk(&self, request: Request<Streaming<Message>>) -> std::result::Result<Response<Outgoing>, Status> {
        let ends = self.0.lock().ok().and_then(|mut ends| ends.take());
        let ends = ends.ok_or_else(|| Status::already_exists("one call is all there is"))?;
        let gone = |_| Status::cancelled("nobody is waiting for a call");
        ends.incoming.send(request.into_inner()).map_err(gone)?;
        Ok(Response::new(Box::pin(ReceiverStream::new(ends.outgoing).map(Ok))))
    }
}

/// The sizes that HTTP/2 and the queues are given.
struct Sizes {
    window: u32,
    frame: u32,
    queue: usize,
    largest: usize,
}

impl Sizes {
    fn of(setup: &Setup) -> Self {
        // HTTP/2 allows windows below 2 GiB and frames below 16 MiB; a frame of gRPC is a little larger than a message.
        let window = (setup.capacity as usize).max(2 * setup.largest).max(1 << 20).min((1 << 31) - 1) as u32;
        let frame = (setup.largest + 64).next_power_of_two().clamp(16 << 10, 8 << 20) as u32;
        let queue = (setup.capacity as usize / setup.largest.max(1)).clamp(1, 1024);
        Self { window, frame, queue, largest: setup.largest + 64 }
    }
}

fn runtime() -> Result<Runtime> {
    Ok(Builder::new_multi_thread().worker_threads(1).enable_all().build()?)
}

fn socket(setup: &Setup) -> PathBuf {
    setup.directory.join("grpc.sock")
}

impl Mechanism for Tonic {
    fn about(&self) -> About {
        let what =
            "tonic: gRPC on a Unix socket, one call that streams both ways, a thread of its own for each side's socket";
        About::new("tonic", Kind::Peer, true, what).version(env!("PEER_VERSION"))
    }

    fn can(&self, burst: &Burst) -> bool {
        // A message may have 4 GiB, but the thread that polled would take the processor of the one that reads.
        burst.size > 0 && !matches!(burst.mode, Mode::Spin | Mode::Hybrid)
    }

    fn prepare(&self, setup: &Setup) -> Result<Prepared> {
        let (sizes, path) = (Sizes::of(setup), socket(setup));
        let finish = move || {
            let runtime = runtime()?;
            let (tx, outgoing) = mpsc::channel(sizes.queue);
            let endpoint = Endpoint::from_shared(format!("unix://{}", path.display()))?;
            let endpoint = endpoint
                .initial_stream_window_size(sizes.window)
                .initial_connection_window_size(sizes.window)
                .max_frame_size(sizes.frame);
            let call = async {
                let began = Instant::now();
                let channel = loop {
                    match endpoint.connect().await {
                        Ok(channel) => break channel,
                        Err(_) if began.elapsed() < Duration::from_secs(10) => {
                            tokio::time::sleep(Duration::from_millis(1)).await;
                        }
                        Err(error) => return Err(Failure::from(error)),
                    }
                };
                let mut client = PeerClient::new(channel)
                    .max_decoding_message_size(sizes.largest)
                    .max_encoding_message_size(sizes.largest);
                Ok(client.talk(ReceiverStream::new(outgoing)).await?.into_inner())
            };
            let rx = runtime.block_on(call)?;
            Ok(Box::new(Pair { tx, rx, out: BytesMut::new(), runtime }) as Box<dyn End>)
        };
        Ok(Prepared::new(String::new(), finish))
    }

    fn join(&self, setup: &Setup, _ticket: &str) -> Result<Box<dyn End>> {
        let (sizes, runtime) = (Sizes::of(setup), runtime()?);
        let (tx, outgoing) = mpsc::channel(sizes.queue);
        let (incoming, called) = oneshot::channel();
        let server = peer_server::PeerServer::new(Talk(Mutex::new(Some(Ends { outgoing, incoming }))))
            .max_decoding_message_size(sizes.largest)
            .max_encoding_message_size(sizes.largest);
        let serve = async {
            let listener = UnixListenerStream::new(UnixListener::bind(socket(setup))?);
            let serve = Server::builder()
                .initial_stream_window_size(sizes.window)
                .initial_connection_window_size(sizes.window)
                .max_frame_size(sizes.frame)
                .add_service(server)
                .serve_with_incoming(listener);
            tokio::spawn(serve);
            Ok::<_, Failure>(called.await?)
        };
        let rx = runtime.block_on(serve)?;
        Ok(Box::new(Pair { tx, rx, out: BytesMut::new(), runtime }))
    }
}

impl Channel for Pair {
    fn configure(&mut self, _mode: Mode) -> Result<()> {
        Ok(())
    }

    fn send(&mut self, size: usize, _flush: bool, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        self.out.resize(size, 0);
        fill(&mut self.out);
        let bytes = self.out.split().freeze();
        // Waits where the queue is full.
        self.tx.blocking_send(Message { bytes }).map_err(|_| "the call has ended".into())
    }

    fn receive(&mut self, size: usize, max: u32, mut read: impl FnMut(&[u8])) -> Result<u32> {
        let Self { rx, runtime, .. } = self;
        runtime.block_on(async {
            let mut count = 0;
            while count < max {
                // The first one is waited for; the others only if they are there.
                let got = match count {
                    0 => rx.message().await?,
                    _ => {
                        let mut next = pin!(rx.message());
                        match poll_fn(|context| Poll::Ready(next.as_mut().poll(context))).await {
                            Poll::Ready(message) => message?,
                            Poll::Pending => break,
                        }
                    }
                };
                let message = got.ok_or("the call has ended")?;
                if message.bytes.len() != size {
                    return Err(format!("a message of {} bytes instead of {size}", message.bytes.len()).into());
                }
                read(&message.bytes);
                count += 1;
            }
            Ok(count)
        })
    }
}

fn main() {
    match ramway_bench::child_main(&[&Tonic, &unary::Unary]) {
        Some(code) => std::process::exit(code),
        None => eprintln!("a worker of `ramway bench`, which starts it"),
    }
}
