//! A segment as `ls` and `inspect` show it: what the library's survey says, with names for the numbers and with the
//! processes that `/proc` shows.

mod topic;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ramway::facts::{BYTE_PUBLISHER, BYTE_SLOT};
use ramway::layout::{Kind, ROLE_CLOSED, ROLE_FENCE_FREE, ROLE_MEMBARRIER_CAPABLE};
use ramway::survey::{self, Segment};
use serde::Serialize;

use crate::procs::{Holder, LiveBus, Processes};
pub use topic::TopicView;

/// One file of the Ramway directory, or one live bus.
#[derive(Serialize)]
pub struct View {
    pub name: String,
    pub path: Option<String>,
    /// `live`, `stale`, or `unusable` where `error` says why.
    pub state: &'static str,
    pub error: Option<String>,
    /// Processes that hold a lock on it, or a bus's memory, as far as they are visible.
    pub users: Vec<User>,
    /// Somebody uses it whom `/proc` does not show from here.
    pub hidden_users: bool,
    #[serde(flatten)]
    pub details: Option<Details>,
}

/// A process and what it does with the segment.
#[derive(Clone, Serialize)]
pub struct User {
    pub pid: u32,
    pub command: String,
    /// `sender`, `receiver`, `listener`, `publisher`, `subscriber`, or `user`.
    pub role: &'static str,
}

/// What the header says.
#[derive(Serialize)]
pub struct Details {
    pub kind: &'static str,
    pub version: String,
    pub persistent: bool,
    pub features_optional: u32,
    /// The whole file in bytes.
    pub size: u64,
    pub uid: u32,
    /// Permission bits in octal.
    pub mode: String,
    pub inode: u64,
    pub created_ns: u64,
    pub age_s: f64,
    pub boot_id: String,
    pub of_another_boot: bool,
    /// The locks: byte 0, 1 and 2. Not known of a bus, which has none.
    pub locks: Option<Locks>,
    /// The first ring's, the region's or the topic's.
    pub capacity: Option<u64>,
    /// Bytes of the first ring that are not released, headers and padding included; of a topic those that its slowest
    /// reliable subscriber has not released.
    pub fill: Option<u64>,
    pub rings: Vec<RingView>,
    pub region: Option<RegionView>,
    pub topic: Option<TopicView>,
}

/// What is locked.
#[derive(Serialize)]
pub struct Locks {
    pub in_use: bool,
    /// Of a topic the publisher.
    pub producer: bool,
    /// Never of a topic, whose subscribers have locks of their own.
    pub consumer: bool,
}

/// One ring.
#[derive(Serialize)]
pub struct RingView {
    pub block: usize,
    pub data_offset: u64,
    pub capacity: u64,
    pub align: u32,
    pub tail: u64,
    pub head: u64,
    pub fill: u64,
    /// Messages and their payloads; not known while the ring moves.
    pub undelivered_messages: Option<u64>,
    pub undelivered_bytes: Option<u64>,
    /// An orderly close waits for its receiver.
    pub unseen_close: bool,
    pub damage: Option<String>,
    /// Of the last message, if it was sent with one.
    pub last_tag: Option<u64>,
    pub producer: RoleView,
    pub consumer: RoleView,
}

/// One role's words.
#[derive(Serialize)]
pub struct RoleView {
    pub epoch: u32,
    pub sleeping: bool,
    pub membarrier_capable: bool,
    pub fence_free: bool,
    pub closed: bool,
    pub flags: u32,
    /// Not of a publisher.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub close_seen: Option<u32>,
}

/// A region.
#[derive(Serialize)]
pub struct RegionView {
    pub data_offset: u64,
    pub capacity: u64,
    pub len: u64,
    pub notifications: u32,
    pub has_waiter: bool,
}

impl View {
    /// Of a file in the directory.
    pub fn new(name: &OsStr, found: &ramway::Result<Segment>, processes: &Processes) -> Self {
        let name = name.to_string_lossy().into_owned();
        match found {
            Ok(segment) => {
                let holders = processes.holders(segment.device, segment.inode);
                let users = users(holders, segment.kind);
                Self {
                    name,
                    path: Some(segment.path.display().to_string()),
                    state: if segment.is_stale() { "stale" } else { "live" },
                    error: None,
                    hidden_users: segment.in_use && users.is_empty(),
                    users,
                    details: Some(Details::new(segment, holders, true)),
                }
            }
            Err(error) => Self {
                name,
                path: None,
                state: "unusable",
                error: Some(error.to_string()),
                users: Vec::new(),
                hidden_users: false,
                details: None,
            },
        }
    }

    /// Of a bus that somebody has open.
    pub fn bus(bus: &LiveBus) -> Self {
        let user = |user: &crate::procs::BusUser| User { pid: user.pid, command: user.command.clone(), role: "user" };
        let read = |path: &Path| survey::inspect_fd(File::open(path).ok()?.as_fd()).ok();
        let segment = bus.users.iter().find_map(|user| read(user.descriptor.as_ref()?));
        Self {
            name: bus.name.clone(),
            path: None,
            state: "live",
            error: None,
            users: bus.users.iter().map(user).collect(),
            hidden_users: bus.users.len() < 2,
            details: segment.map(|segment| Details::new(&segment, &[], false)),
        }
    }

    /// Who is attached, in a few words.
    pub fn attached_shortly(&self) -> String {
        let Some(topic) = self.details.as_ref().and_then(|details| details.topic.as_ref()) else {
            return self.attached();
        };
        if self.users.is_empty() && !self.hidden_users && topic.subscribers.is_empty() {
            return self.attached();
        }
        topic.summary(self.users.iter().filter(|user| user.role == "user").count())
    }

    /// Who is attached, in words.
    pub fn attached(&self) -> String {
        let mut words: Vec<String> = self.users.iter().map(|u| format!("{} {} {}", u.role, u.pid, u.command)).collect();
        if self.hidden_users {
            words.push("a process that is not visible from here".into());
        }
        if words.is_empty() { "nobody".into() } else { words.join(", ") }
    }
}

impl Details {
    fn new(segment: &Segment, holders: &[Holder], named: bool) -> Self {
        let rings: Vec<RingView> = segment
            .rings
            .iter()
            .enumerate()
            .filter_map(|(block, ring)| ring.as_ref().map(|ring| RingView::new(block, ring)))
            .collect();
        let region = segment.region.as_ref().map(|region| RegionView {
            data_offset: region.data_offset,
            capacity: region.capacity,
            len: region.len,
            notifications: region.notifications,
            has_waiter: region.has_waiter,
        });
        let topic = segment.topic.as_ref().map(|topic| TopicView::new(segment, topic, holders));
        let (producer, consumer) = (segment.producer_held, segment.consumer_held);
        let ring = rings.first();
        Self {
            kind: segment.kind.name(),
            version: format!("{}.{}", segment.version.0, segment.version.1),
            persistent: segment.persistent,
            features_optional: segment.features_optional,
            size: segment.size,
            uid: segment.uid,
            mode: format!("{:04o}", segment.mode),
            inode: segment.inode,
            created_ns: segment.created_ns,
            age_s: age(segment.created_ns).as_secs_f64(),
            boot_id: segment.boot_id.iter().map(|byte| format!("{byte:02x}")).collect(),
            of_another_boot: segment.of_another_boot,
            locks: named.then_some(Locks { in_use: segment.in_use, producer, consumer }),
            capacity: (ring.map(|ring| ring.capacity))
                .or(region.as_ref().map(|region| region.capacity))
                .or(topic.as_ref().map(|topic| topic.capacity)),
            fill: ring.map(|ring| ring.fill).or(topic.as_ref().and_then(TopicView::fill)),
            rings,
            region,
            topic,
        }
    }

    /// How long ago it was made, by the wall clock.
    pub fn age(&self) -> Duration {
        Duration::from_secs_f64(self.age_s)
    }
}

impl RingView {
    fn new(block: usize, ring: &survey::Ring) -> Self {
        Self {
            block,
            data_offset: ring.data_offset,
            capacity: ring.capacity,
            align: ring.align,
            tail: ring.tail,
            head: ring.head,
            fill: ring.tail.wrapping_sub(ring.head).min(ring.capacity),
            undelivered_messages: ring.undelivered.map(|undelivered| undelivered.messages),
            undelivered_bytes: ring.undelivered.map(|undelivered| undelivered.bytes),
            unseen_close: ring.unseen_close,
            damage: ring.damage.clone(),
            last_tag: ring
                .last_tags
                .iter()
                .find(|record| record.0 == ring.tail)
                .map(|record| record.1)
                .filter(|tag| *tag != 0),
            producer: RoleView::new(&ring.producer),
            consumer: RoleView::new(&ring.consumer),
        }
    }
}

impl RoleView {
    fn new(role: &survey::Role) -> Self {
        Self {
            epoch: role.epoch,
            sleeping: role.wait != 0,
            membarrier_capable: role.flags & ROLE_MEMBARRIER_CAPABLE != 0,
            fence_free: role.flags & ROLE_FENCE_FREE != 0,
            closed: role.flags & ROLE_CLOSED != 0,
            flags: role.flags,
            close_seen: Some(role.close_seen),
        }
    }
}

/// One line a process: its roles, or that it is there at all.
fn users(holders: &[Holder], kind: Kind) -> Vec<User> {
    let mut by_pid: BTreeMap<u32, (&str, Vec<&Holder>)> = BTreeMap::new();
    for holder in holders {
        by_pid.entry(holder.pid).or_insert((&holder.command, Vec::new())).1.push(holder);
    }
    let mut users = Vec::new();
    for (pid, (command, held)) in by_pid {
        let mut add = |role| users.push(User { pid, command: command.to_owned(), role });
        let roles: Vec<&'static str> = held
            .iter()
            .filter_map(|holder| match (holder.byte, kind) {
                (1, Kind::Listener) => Some("listener"),
                // Only an exclusive lock is a life.
                (_, Kind::Topic) if !holder.exclusive => None,
                (BYTE_PUBLISHER, Kind::Topic) => Some("publisher"),
                (BYTE_SLOT.., Kind::Topic) => Some("subscriber"),
                (_, Kind::Topic) => None,
                (1, _) => Some("sender"),
                (2, _) => Some("receiver"),
                _ => None,
            })
            .collect();
        if roles.is_empty() {
            add("user");
        }
        roles.into_iter().for_each(add);
    }
    users
}

fn age(created_ns: u64) -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.saturating_sub(Duration::from_nanos(created_ns))
}
