//! A server of RPC whose handlers are tasks, and that is one.

mod support;

use ramway::ErrorKind;
use ramway::rpc::{CallOptions, Client, Fault, Server, Status};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use support::caller::Caller;
use support::{Dir, LONG, eventually};

/// Counts those that are dropped.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// An endless stream of numbers, of which each is there only when it is asked for again.
struct Numbers {
    next: u32,
    is_there: bool,
    _counted: Counted,
}

impl futures_core::Stream for Numbers {
    type Item = Result<Vec<u8>, Fault>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.is_there = !self.is_there;
        if self.is_there {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.next += 1;
        Poll::Ready(Some(Ok(self.next.to_le_bytes().to_vec())))
    }
}

fn methods(server: &mut Server, dropped: &Arc<AtomicUsize>) {
    server
        .task(1, |request| async move {
            tokio::task::yield_now().await;
            Ok(request.into_body())
        })
        .unwrap();
    let counted = dropped.clone();
    server
        .task(2, move |_| {
            let counted = Counted(counted.clone());
            async move {
                let _counted = counted;
                std::future::pending::<Result<(), Fault>>().await
            }
        })
        .unwrap();
    server.task(3, |_| async { Err::<(), _>(Fault::new(5, "a fault")) }).unwrap();
    server
        .task(4, |_| async {
            tokio::task::yield_now().await;
            panic!("a task") as Result<(), Fault>
        })
        .unwrap();
    let counted = dropped.clone();
    server.task_stream(5, move |_| Numbers { next: 0, is_there: false, _counted: Counted(counted.clone()) }).unwrap();
}

fn check(path: &str, dropped: &AtomicUsize) {
    let mut client = Client::connect(path).unwrap();
    for i in 0..200u32 {
        assert_eq!(client.call(1, &i.to_le_bytes()).unwrap().body(), i.to_le_bytes());
    }
    assert_eq!(client.call(3, b"").unwrap_err().code(), 5);
    assert_eq!(client.call(4, b"").unwrap_err().status(), Some(Status::HandlerFailed));
    let short = CallOptions::new().timeout(Duration::from_millis(20));
    assert!(client.call_with(2, b"", &short).unwrap_err().is_timed_out());
    eventually("the future is dropped", || dropped.load(Ordering::SeqCst) == 1);
    let mut stream = client.stream(5, b"").unwrap();
    for n in 1..=100u32 {
        assert_eq!(stream.next(&mut client).unwrap().unwrap().body(), n.to_le_bytes());
    }
    stream.cancel(&mut client);
    client.ping().unwrap();
    eventually("the stream is dropped", || dropped.load(Ordering::SeqCst) == 2);
    assert_eq!(client.call(5, b"").unwrap_err().status(), Some(Status::HandlerFailed));

    // Its final REPLY comes when the future is gone, not before.
    let mut caller = Caller::connect(path);
    let id = caller.call(2, b"");
    caller.cancel(id);
    assert_eq!(caller.reply().head(), (id, false, Status::Cancelled as u32));
    assert_eq!(dropped.load(Ordering::SeqCst), 3);
}

#[test]
fn tasks_are_handlers_of_a_server_on_a_thread_of_its_own() {
    let dir = Dir::new();
    let path = dir.at("rpc.sock");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let dropped = Arc::new(AtomicUsize::new(0));
    let mut server = Server::bind(&path).unwrap();
    let outside = server.task(1, |_| async { Ok(()) }).unwrap_err();
    assert_eq!(outside.kind(), ErrorKind::InvalidArgument);
    {
        let _inside = runtime.enter();
        methods(&mut server, &dropped);
    }
    let stopper = server.stopper();
    let serving = std::thread::spawn(move || server.run());
    check(&path, &dropped);
    stopper.shutdown(LONG);
    serving.join().unwrap().unwrap();
}

#[test]
fn a_server_is_a_task_itself() {
    let dir = Dir::new();
    let path = dir.at("rpc.sock");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let dropped = Arc::new(AtomicUsize::new(0));
    let mut server = Server::bind(&path).unwrap();
    {
        let _inside = runtime.enter();
        methods(&mut server, &dropped);
    }
    let stopper = server.stopper();
    let serving = std::thread::spawn(move || {
        runtime.block_on(async move {
            // Dropped in between: the server goes on where it was.
            for _ in 0..3 {
                let _ = tokio::time::timeout(Duration::from_millis(1), server.serve()).await;
            }
            server.stopper().interrupt();
            assert_eq!(server.serve().await.unwrap_err().kind(), ErrorKind::Interrupted);
            server.serve().await
        })
    });
    check(&path, &dropped);
    stopper.shutdown(LONG);
    serving.join().unwrap().unwrap();
}
