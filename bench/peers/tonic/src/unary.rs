//! A call for each request, as gRPC is mostly used: tonic's defaults, the server's handler and the client's calls in a runtime each.

use super::generated::{answers_client::AnswersClient, answers_server};
use super::{Message, Result, Sizes, runtime, socket};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use ramway_bench::{
    About, Burst, Control, End, Kind, Mechanism, Mode, Prepared, REQUEST, RoundTrips, Setup, Test, fill, sum, verify,
};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};
use tokio::net::UnixListener;
use tokio::runtime::Runtime;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Response, Status};

pub struct Unary;

struct Caller {
    client: AnswersClient<Channel>,
    runtime: Runtime,
}

/// What the handler does now.
#[derive(Default)]
struct Work {
    size: AtomicU64,
    count: AtomicU64,
    served: AtomicU64,
    total: AtomicU64,
}

struct Handler {
    work: Arc<Work>,
    done: Mutex<mpsc::Sender<()>>,
}

struct Answering {
    work: Arc<Work>,
    done: mpsc::Receiver<()>,
    _runtime: Runtime,
}

#[tonic::async_trait]
impl answers_server::Answers for Handler {
    async fn ask(&self, request: Request<Message>) -> std::result::Result<Response<Message>, Status> {
        let work = &self.work;
        work.total.fetch_add(sum(&request.into_inner().bytes), Relaxed);
        let n = work.served.fetch_add(1, Relaxed);
        let size = work.size.load(Acquire) as usize;
        let mut bytes = BytesMut::zeroed(size);
        fill(&mut bytes, n);
        if n + 1 == work.count.load(Relaxed) {
            let done = self.done.lock().map_err(|_| Status::internal("poisoned"))?;
            done.send(()).map_err(|_| Status::cancelled("nobody waits"))?;
        }
        Ok(Response::new(Message { bytes: bytes.freeze() }))
    }
}

impl Mechanism for Unary {
    fn about(&self) -> About {
        let what = "tonic: gRPC on a Unix socket, a unary call for each request, a thread of its own for each side's socket";
        About::new("tonic-unary", Kind::Peer, true, what).version(env!("PEER_VERSION"))
    }

    fn can(&self, burst: &Burst) -> bool {
        burst.test == Test::Call && burst.mode == Mode::Block
    }

    fn prepare(&self, setup: &Setup) -> Result<Prepared> {
        let (path, largest) = (socket(setup), Sizes::of(setup).largest);
        let finish = move || {
            let runtime = runtime()?;
            let endpoint = Endpoint::from_shared(format!("unix://{}", path.display()))?;
            let connect = async {
                let began = Instant::now();
                loop {
                    match endpoint.connect().await {
                        Ok(channel) => return Ok(channel),
                        Err(_) if began.elapsed() < Duration::from_secs(10) => {
                            tokio::time::sleep(Duration::from_millis(1)).await;
                        }
                        Err(error) => return Err(error),
                    }
                }
            };
            let channel = runtime.block_on(connect)?;
            let client = AnswersClient::new(channel).max_decoding_message_size(largest);
            Ok(Box::new(Caller { client, runtime }) as Box<dyn End>)
        };
        Ok(Prepared::new(String::new(), finish))
    }

    fn join(&self, setup: &Setup, _ticket: &str) -> Result<Box<dyn End>> {
        let (runtime, work) = (runtime()?, Arc::new(Work::default()));
        let (tell, done) = mpsc::channel();
        let handler = Handler { work: Arc::clone(&work), done: Mutex::new(tell) };
        let path = socket(setup);
        let largest = Sizes::of(setup).largest;
        runtime.block_on(async {
            let listener = UnixListenerStream::new(UnixListener::bind(path)?);
            let service = answers_server::AnswersServer::new(handler).max_encoding_message_size(largest);
            tokio::spawn(Server::builder().add_service(service).serve_with_incoming(listener));
            Ok::<_, ramway_bench::Failure>(())
        })?;
        Ok(Box::new(Answering { work, done, _runtime: runtime }))
    }
}

fn request(n: u64) -> Request<Message> {
    let mut bytes = [0; REQUEST];
    fill(&mut bytes, n);
    Request::new(Message { bytes: Bytes::copy_from_slice(&bytes) })
}

impl End for Caller {
    fn lead(&mut self, burst: &Burst, _control: &Control, samples: &mut Vec<u64>) -> Result<()> {
        let Burst { size, count, batch, group, .. } = *burst;
        let Self { client, runtime } = self;
        let (mut total, mut next) = (0u64, 0);
        let mut round_trips = RoundTrips::new(group);
        runtime.block_on(async {
            let mut under_way = FuturesOrdered::new();
            for _ in 0..count {
                while next < count && under_way.len() < batch as usize {
                    let mut client = client.clone();
                    let request = request(next);
                    under_way.push_back(async move { client.ask(request).await });
                    next += 1;
                }
                let reply = under_way.next().await.ok_or("a call is under way")??.into_inner();
                if reply.bytes.len() != size {
                    return Err(format!("a reply of {} bytes instead of {size}", reply.bytes.len()).into());
                }
                total = total.wrapping_add(sum(&reply.bytes));
                round_trips.passed(samples);
            }
            verify(total, size, count)
        })
    }

    fn follow(&mut self, _burst: &Burst, _control: &Control) -> Result<()> {
        Err("the calling side leads".into())
    }
}

impl End for Answering {
    fn lead(&mut self, _burst: &Burst, _control: &Control, _samples: &mut Vec<u64>) -> Result<()> {
        Err("the calling side leads".into())
    }

    fn follow(&mut self, burst: &Burst, _control: &Control) -> Result<()> {
        let Work { size, count, served, total } = &*self.work;
        count.store(burst.count, Relaxed);
        served.store(0, Relaxed);
        total.store(0, Relaxed);
        size.store(burst.size as u64, Release);
        self.done.recv()?;
        verify(total.load(Relaxed), REQUEST, burst.count)
    }
}
