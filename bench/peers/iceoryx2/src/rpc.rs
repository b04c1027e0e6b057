//! iceoryx2's request-response: requests and responses of byte slices, loaned, filled, sent and read in place. It has no wait of
//! its own: where the sides sleep, an event service beside each way, a notification for each message.

use super::{PREFIX, Rest, Result, is_stale, remove};
use core::mem::MaybeUninit;
use iceoryx2::active_request::ActiveRequest;
use iceoryx2::pending_response::PendingResponse;
use iceoryx2::port::{client::Client, listener::Listener, notifier::Notifier, server::Server};
use iceoryx2::prelude::*;
use ramway_bench::{About, Burst, Channel, End, Failure, Kind, Mechanism, Mode, Prepared, REQUEST, Setup, Test};
use std::collections::VecDeque;

pub struct Rpc;

/// Calls under way, at most: as many as a burst has.
const UNDER_WAY: usize = 64;

enum Port {
    Client(Client<ipc::Service, [u8], (), [u8], ()>, VecDeque<PendingResponse<ipc::Service, [u8], (), [u8], ()>>),
    Server(Server<ipc::Service, [u8], (), [u8], ()>, Option<ActiveRequest<ipc::Service, [u8], (), [u8], ()>>),
}

struct Side {
    // Ports go before the node that they belong to.
    port: Port,
    notifier: Notifier<ipc::Service>,
    listener: Listener<ipc::Service>,
    sleeps: bool,
    _node: Node<ipc::Service>,
    _rest: Option<Rest>,
}

fn open(setup: &Setup, prefix: &str, calls: bool) -> Result<Side> {
    set_log_level(LogLevel::Error);
    let mut config = Config::default();
    // Names of this pair's own: nothing is shared with, or left to, another run.
    config.global.prefix = FileName::new(prefix.as_bytes())?;
    let directory = setup.directory.to_str().ok_or("a path that is not UTF-8")?;
    config.global.set_root_path(&Path::new(directory.as_bytes())?);
    let node = NodeBuilder::new()
        .config(&config)
        .signal_handling_mode(SignalHandlingMode::Disabled)
        .create::<ipc::Service>()?;
    let service = node.service_builder(&"calls".try_into()?).request_response::<[u8], [u8]>();
    let service = service.max_clients(1).max_servers(1).max_nodes(2);
    let service = service.max_active_requests_per_client(UNDER_WAY).max_response_buffer_size(1);
    let service = service.max_loaned_requests(1).enable_safe_overflow_for_requests(false);
    let service = service.enable_safe_overflow_for_responses(false).open_or_create()?;
    let events = |name: &str| -> Result<_> {
        let service = node.service_builder(&name.try_into()?).event();
        Ok(service.max_notifiers(1).max_listeners(1).max_nodes(2).open_or_create()?)
    };
    let (asks, answers) = (events("asks")?, events("answers")?);
    let (port, listener, notifier) = if calls {
        let client = service.client_builder().initial_max_slice_len(REQUEST).create()?;
        (Port::Client(client, VecDeque::new()), answers.listener_builder().create()?, asks.notifier_builder().create()?)
    } else {
        let server = service.server_builder().initial_max_slice_len(setup.largest).create()?;
        (Port::Server(server, None), asks.listener_builder().create()?, answers.notifier_builder().create()?)
    };
    Ok(Side { port, notifier, listener, sleeps: false, _node: node, _rest: None })
}

impl Mechanism for Rpc {
    fn about(&self) -> About {
        let what = "iceoryx2 request-response in place; an event for each message where a side sleeps";
        About::new("iceoryx2-rpc", Kind::Peer, false, what).version(env!("PEER_VERSION"))
    }

    fn can(&self, burst: &Burst) -> bool {
        // Where 64 are under way it polls: it has no wait that polls first.
        burst.test == Test::Call && (burst.mode != Mode::Hybrid || burst.batch > 1)
    }

    fn prepare(&self, setup: &Setup) -> Result<Prepared> {
        remove(is_stale);
        let prefix = format!("{PREFIX}{}_", std::process::id());
        let mut side = open(setup, &prefix, true)?;
        side._rest = Some(Rest(prefix.clone()));
        Ok(Prepared::new(prefix, move || Ok(Box::new(side) as Box<dyn End>)))
    }

    fn join(&self, setup: &Setup, ticket: &str) -> Result<Box<dyn End>> {
        Ok(Box::new(open(setup, ticket, false)?))
    }
}

/// The bytes of a loan, which `fill` only writes.
fn bytes(loan: &mut [MaybeUninit<u8>]) -> &mut [u8] {
    // SAFETY: the same bytes; whoever gets them writes all of them before it reads any.
    unsafe { std::slice::from_raw_parts_mut(loan.as_mut_ptr().cast(), loan.len()) }
}

impl Channel for Side {
    fn configure(&mut self, mode: Mode) -> Result<()> {
        self.sleeps = mode == Mode::Block;
        Ok(())
    }

    #[inline(always)]
    fn send(&mut self, size: usize, _flush: bool, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        match &mut self.port {
            Port::Client(client, under_way) => {
                let mut loan = client.loan_slice_uninit(size)?;
                fill(bytes(loan.payload_mut()));
                // SAFETY: filled just now.
                under_way.push_back(unsafe { loan.assume_init() }.send()?);
            }
            Port::Server(_, request) => {
                let request = request.take().ok_or("nothing was asked")?;
                let mut loan = request.loan_slice_uninit(size)?;
                fill(bytes(loan.payload_mut()));
                // SAFETY: filled just now.
                unsafe { loan.assume_init() }.send()?;
            }
        }
        if self.sleeps {
            self.notifier.notify()?;
        }
        Ok(())
    }

    #[inline(always)]
    fn receive(&mut self, size: usize, _max: u32, mut read: impl FnMut(&[u8])) -> Result<u32> {
        let mut take = |got: &[u8]| -> Result<u32> {
            if got.len() != size {
                return Err(Failure::from(format!("a message of {} bytes instead of {size}", got.len())));
            }
            read(got);
            Ok(1)
        };
        loop {
            match &mut self.port {
                Port::Client(_, under_way) => {
                    let first = under_way.front().ok_or("no call is under way")?;
                    if let Some(response) = first.receive()? {
                        let taken = take(response.payload());
                        drop(response);
                        under_way.pop_front();
                        return taken;
                    }
                }
                Port::Server(server, asked) => {
                    if let Some(request) = server.receive()? {
                        let taken = take(request.payload());
                        *asked = Some(request);
                        return taken;
                    }
                }
            }
            if self.sleeps {
                self.listener.blocking_wait(|_| {})?;
            } else {
                std::hint::spin_loop();
            }
        }
    }
}
