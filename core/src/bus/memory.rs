//! The memory of a bus: made by the listener, distrusted by the connector.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use super::handshake;
use crate::facts::{RPC_FEATURES, RPC_IN_FLIGHT_MAX};
use crate::layout::Kind;
use crate::origin::Origin;
use crate::ring::options::EndOptions;
use crate::segment::{Attachment, HeaderMap, Link, RingGeometry, Role, SocketLink, Spec, format, validate_knowing};
use crate::sys::mem::{Access, MirrorMap, page_size};
use crate::sys::{fork, memfd};
use crate::{Error, ErrorKind, Receiver, Result, Sender};

/// What a listener gives every bus.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The listener's name, which the memfd carries so that `ramway ls` finds the bus.
    pub(crate) name: String,
    /// From the listener to the connector, in bytes; 0 = none.
    pub(crate) to_peer: u64,
    /// From the connector to the listener.
    pub(crate) from_peer: u64,
    pub(crate) align: u32,
    /// Of an RPC server: how many calls a client may have in flight, 1 to [`RPC_IN_FLIGHT_MAX`].
    pub(crate) max_in_flight: Option<u32>,
}

impl Plan {
    /// What both sides have to require.
    pub(crate) fn features(&self) -> u32 {
        handshake::features(self.max_in_flight)
    }
}

/// The ends that one side has.
pub(crate) struct Halves {
    pub(crate) sender: Option<Sender>,
    pub(crate) receiver: Option<Receiver>,
}

/// Which side we are: the listener sends into block 0, the connector into block 1.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Listener,
    Connector,
}

/// Checks a plan, and what it will take.
pub(crate) fn spec(plan: &Plan) -> Result<Spec> {
    if plan.to_peer == 0 && plan.from_peer == 0 {
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            "a bus with a capacity of 0 in both directions: expected at least one other than 0",
        ));
    }
    let mut spec = Spec::bus(plan.to_peer, plan.from_peer, plan.align, page_size())?;
    if let Some(max) = plan.max_in_flight
        && !(1..=RPC_IN_FLIGHT_MAX).contains(&max)
    {
        let text = format!("{max} calls in flight: expected 1 to {RPC_IN_FLIGHT_MAX}");
        return Err(Error::new(ErrorKind::InvalidArgument, text));
    }
    spec.features_required = plan.features();
    Ok(spec)
}

/// New memory with both rings empty, the listener attached to its ends, and its size. `socket` is descriptor 0 of the
/// entry.
pub(crate) fn create(plan: &Plan, socket: &fork::Entry, options: EndOptions) -> Result<(Halves, Arc<OwnedFd>, u64)> {
    let spec = spec(plan)?;
    let memory = memfd::create(&format!("ramway-bus:{}", plan.name), spec.size, &format(&spec).0[..])?;
    let memory = Arc::new(memory);
    let origin = Origin::named("bus", &plan.name);
    let halves = attach(&memory, spec.size, spec.features_required, socket, Side::Listener, options, &origin)?;
    Ok((halves, memory, spec.size))
}

/// Memory that a listener sent, said to have `size` bytes. Nothing of it is believed before it is checked; whatever
/// the listener writes into it later is the rings' to check.
pub(crate) fn open(
    memory: OwnedFd,
    size: u64,
    features: u32,
    socket: &fork::Entry,
    options: EndOptions,
    origin: &Origin,
) -> Result<Halves> {
    let real = memfd::sealed_size(memory.as_fd())?;
    if real != size || real < HeaderMap::mapped_len() as u64 {
        let text = format!("the memory received has {real} bytes, WELCOME announced {size}");
        return Err(Error::new(ErrorKind::Corrupt, text));
    }
    attach(&Arc::new(memory), real, features, socket, Side::Connector, options, origin)
}

fn attach(
    memory: &Arc<OwnedFd>,
    size: u64,
    features: u32,
    socket: &fork::Entry,
    side: Side,
    options: EndOptions,
    origin: &Origin,
) -> Result<Halves> {
    let header = Arc::new(HeaderMap::map(memory.as_fd(), Access::ReadWrite)?);
    let valid = validate_knowing(features, &header.snapshot(), size)?;
    if valid.header.features_required != features {
        let text = "the memory sent is of a plain bus, expected an RPC's";
        return Err(Error::new(ErrorKind::AbiMismatch, text));
    }
    if valid.header.kind != Kind::Bus {
        let text = format!("the memory sent holds a {}, expected a bus", valid.header.kind.name());
        return Err(Error::new(ErrorKind::Corrupt, text));
    }
    let attachment = |block: usize, ring: &RingGeometry, role: Role| -> Result<Attachment> {
        let data = MirrorMap::map(memory.as_fd(), ring.data_offset, ring.capacity as usize, options.access(role))?;
        let link = Link::Socket(SocketLink { entry: socket.clone(), _memory: memory.clone() });
        Ok(Attachment::new(data, header.clone(), block, ring, origin.clone(), link, socket.clone()))
    };
    let (out, back) = if side == Side::Listener { (0, 1) } else { (1, 0) };
    let (sending, receiving) = (valid.rings[out], valid.rings[back]);
    if features == RPC_FEATURES && (sending.is_none() || receiving.is_none()) {
        return Err(Error::new(ErrorKind::Corrupt, "an RPC's bus has a ring in one direction only, expected both"));
    }
    if sending.is_none() && receiving.is_none() {
        return Err(Error::new(ErrorKind::Corrupt, "the bus has no ring in either direction, expected at least one"));
    }
    let sender = sending.map(|ring| options.sender(attachment(out, &ring, Role::Producer)?)).transpose()?;
    let receiver = receiving.map(|ring| options.receiver(attachment(back, &ring, Role::Consumer)?)).transpose()?;
    Ok(Halves { sender, receiver })
}
