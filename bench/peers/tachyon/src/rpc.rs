//! Tachyon's RpcBus: one caller, one callee, a correlation id for each call.

use super::{CAPACITY_MAX, FOREVER, HYBRID, Result, least_capacity, path};
use ramway_bench::{About, Burst, Channel, End, Failure, Kind, Mechanism, Mode, Prepared, REQUEST, Setup, Test};
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use tachyon_ipc::{RpcBus, TachyonError};

pub struct Rpc;

struct Side {
    bus: RpcBus,
    /// The side that calls; the other one answers.
    calls: bool,
    under_way: VecDeque<u64>,
    answering: u64,
    spins: u32,
}

impl Mechanism for Rpc {
    fn about(&self) -> About {
        let what = "Tachyon's RpcBus in place, in its polling mode where the sides poll";
        About::new("tachyon-rpc", Kind::Peer, false, what).version(env!("PEER_VERSION"))
    }

    fn can(&self, burst: &Burst) -> bool {
        burst.test == Test::Call && least_capacity(burst.size) <= CAPACITY_MAX
    }

    fn prepare(&self, setup: &Setup) -> Result<Prepared> {
        let setup = setup.clone();
        let finish = move || {
            let capacity = |size| (setup.capacity as usize).next_power_of_two().max(least_capacity(size)).min(CAPACITY_MAX);
            // Returns when the other side has connected.
            let bus = RpcBus::listen(&path(&setup, "rpc")?, capacity(REQUEST), capacity(setup.largest))?;
            Ok(Box::new(Side::new(bus, true)) as Box<dyn End>)
        };
        Ok(Prepared::new(String::new(), finish))
    }

    fn join(&self, setup: &Setup, _ticket: &str) -> Result<Box<dyn End>> {
        let (path, began) = (path(setup, "rpc")?, Instant::now());
        loop {
            match RpcBus::connect(&path) {
                Ok(bus) => return Ok(Box::new(Side::new(bus, false))),
                Err(_) if began.elapsed() < Duration::from_secs(10) => std::thread::sleep(Duration::from_millis(1)),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Side {
    fn new(bus: RpcBus, calls: bool) -> Self {
        Self { bus, calls, under_way: VecDeque::new(), answering: 0, spins: HYBRID }
    }
}

impl Channel for Side {
    fn configure(&mut self, mode: Mode) -> Result<()> {
        self.spins = match mode {
            Mode::Block => 0,
            Mode::Hybrid => HYBRID,
            _ => FOREVER,
        };
        self.bus.set_polling_mode(mode == Mode::Spin);
        Ok(())
    }

    #[inline(always)]
    fn send(&mut self, size: usize, _flush: bool, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        let mut slot = loop {
            let slot = match self.calls {
                true => self.bus.acquire_call(size),
                false => self.bus.acquire_reply(self.answering, size),
            };
            match slot {
                Ok(slot) => break slot,
                // It has no way to wait for space.
                Err(TachyonError::BufferFull) => std::hint::spin_loop(),
                Err(error) => return Err(error.into()),
            }
        };
        fill(slot.as_mut_slice());
        let id = slot.commit(size, 1)?;
        if self.calls {
            self.under_way.push_back(id);
        }
        Ok(())
    }

    #[inline(always)]
    fn receive(&mut self, size: usize, _max: u32, mut read: impl FnMut(&[u8])) -> Result<u32> {
        let message = match self.calls {
            true => self.bus.wait(self.under_way.pop_front().ok_or("no call is under way")?, self.spins)?,
            false => self.bus.serve(self.spins)?,
        };
        if message.actual_size != size {
            return Err(Failure::from(format!("a message of {} bytes instead of {size}", message.actual_size)));
        }
        read(message.data());
        if !self.calls {
            self.answering = message.correlation_id;
        }
        message.commit()?;
        Ok(1)
    }
}
