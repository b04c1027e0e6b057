//! How a topic is made or opened.

use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use super::join::{Label, Seats, Start, View, Wanted, join};
use super::place::{Place, Policy, SideOptions, Words};
use super::{Publisher, Subscriber, Topic};
use crate::error::{Error, ErrorKind, Result};
use crate::facts::{CAPACITY_DEFAULT, LABEL_MAX, RACE_PAUSE_MIN, RACE_TIMEOUT, TOPIC_SLOTS_DEFAULT};
use crate::layout::{Kind, TOPIC_ALIGN_MIN, TOPIC_LOSSY_ONLY, TOPIC_MAY_EJECT};
use crate::origin::Origin;
use crate::ring::options::{EndOptions, end_options};
use crate::segment::{
    Attachment, Attempts, Intent, Link, Named, NamedLink, Request, RingGeometry, SegmentOptions, Spec, SubscribersMap,
    TopicGeometry, Valid, map_data, named, segment_options,
};
use crate::sys::mem::Access;
use crate::sys::membarrier;

/// For how long a slot or a label is tried again that is taken, however short the time-out is.
const BUSY_INSTANT: Duration = Duration::from_millis(5);

impl Topic {
    /// A topic that must be new. `AlreadyExists` if somebody uses the name, if it holds what a durable subscriber has not
    /// read (unless [`discard`](TopicBuilder::discard)), or if something else has it. What dead processes left is replaced.
    pub fn create(name: impl AsRef<OsStr>) -> TopicBuilder {
        TopicBuilder::new(name.as_ref(), Intent::Create)
    }

    /// A topic that exists, also one that dead processes left. `NotFound` if there is no such topic (see
    /// [`timeout`](TopicBuilder::timeout)).
    pub fn open(name: impl AsRef<OsStr>) -> TopicBuilder {
        TopicBuilder::new(name.as_ref(), Intent::Open)
    }

    /// A topic that is opened if it exists and made if not. `InvalidArgument` if it exists with another capacity, alignment
    /// or number of slots than was asked for, or without a property that was asked for.
    pub fn open_or_create(name: impl AsRef<OsStr>) -> TopicBuilder {
        TopicBuilder::new(name.as_ref(), Intent::OpenOrCreate)
    }
}

/// How a topic is to be made or opened; ends in [`publisher`](Self::publisher) or [`subscriber`](Self::subscriber). An option
/// that the other side has is `InvalidArgument`.
///
/// ```
/// # fn main() -> ramway::Result<()> {
/// # let name = format!("/dev/shm/ramway-doc-topic-builder-{}", std::process::id());
/// use std::time::Duration;
/// let publisher = ramway::Topic::create(&name)
///     .capacity(8 << 20)
///     .slots(64)
///     .eject_after(Duration::from_secs(1))
///     .publisher()?;
/// let recorder = ramway::Topic::open(&name).label("recorder").durable(true).subscriber()?;
/// let viewer = ramway::Topic::open(&name).lossy().subscriber()?;
/// assert_eq!(publisher.subscribers().len(), 2);
/// # recorder.unsubscribe()?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `publisher` or `subscriber` is called"]
pub struct TopicBuilder {
    name: OsString,
    intent: Intent,
    capacity: Option<u64>,
    align: Option<u32>,
    slots: Option<u32>,
    lossy_only: bool,
    may_eject: bool,
    eject_after: Option<Duration>,
    timestamps: bool,
    policy: Option<Policy>,
    start: Option<Start>,
    label: Option<String>,
    durable: bool,
    read_only: bool,
    segment: SegmentOptions,
    end: EndOptions,
}

impl TopicBuilder {
    fn new(name: &OsStr, intent: Intent) -> Self {
        Self {
            name: name.into(),
            intent,
            capacity: None,
            align: None,
            slots: None,
            lossy_only: false,
            may_eject: false,
            eject_after: None,
            timestamps: false,
            policy: None,
            start: None,
            label: None,
            durable: false,
            read_only: false,
            segment: SegmentOptions::default(),
            end: EndOptions::default(),
        }
    }

    /// Bytes of data, frame headers (32 bytes a message) included; rounded up to a power of two of at least a page. Default
    /// 1 MiB. A message takes at most half of it. An existing topic must have just this capacity if it is said here.
    pub fn capacity(mut self, bytes: u64) -> Self {
        self.capacity = Some(bytes);
        self
    }

    /// What each payload's address is a multiple of: a power of two from 32 (the default) to 4096, in bytes. An existing
    /// topic must have just this alignment if it is said here.
    pub fn align(mut self, bytes: u32) -> Self {
        self.align = Some(bytes);
        self
    }

    /// How many reliable subscribers there can be at a time, 1 to 1024; default 32. Others take a free slot of the upper half,
    /// so that they are seen, and do without where there is none: so half of the slots, rounded up, are for reliable ones
    /// whoever else is there. An existing topic must have just this number if it is said here.
    pub fn slots(mut self, count: u32) -> Self {
        self.slots = Some(count);
        self
    }

    /// A new topic takes no reliable subscriber, so that its publisher never waits. An existing one must be such.
    pub fn lossy_only(mut self, yes: bool) -> Self {
        self.lossy_only = yes;
        self
    }

    /// The publisher of a new topic may eject a reliable subscriber that holds it up ([`eject_after`](Self::eject_after),
    /// which asks for this). Reliable subscribers then get copies, not views. An existing topic must be such.
    pub fn may_eject(mut self, yes: bool) -> Self {
        self.may_eject = yes;
        self
    }

    /// Publisher: a reliable subscriber that has kept it waiting for this long without reading anything is ejected; its next
    /// call gives `Lagged`, and it goes on at the oldest message that is left. More than 0; without this the publisher waits
    /// for it as long as its process lives.
    pub fn eject_after(mut self, time: Duration) -> Self {
        self.eject_after = Some(time);
        self
    }

    /// Publisher: every message says when it was sent, by the wall clock (some 25 ns a message). Default: 0.
    pub fn timestamps(mut self, yes: bool) -> Self {
        self.timestamps = yes;
        self
    }

    /// Subscriber: how it reads. Default [`Policy::Reliable`].
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// Subscriber: [`Policy::Reliable`].
    pub fn reliable(self) -> Self {
        self.policy(Policy::Reliable)
    }

    /// Subscriber: [`Policy::Lossy`].
    pub fn lossy(self) -> Self {
        self.policy(Policy::Lossy)
    }

    /// Subscriber: [`Policy::Latest`].
    pub fn latest(self) -> Self {
        self.policy(Policy::Latest)
    }

    /// Subscriber: a name for those who watch, and what [`durable`](Self::durable) finds its cursor by: 1 to 64 bytes of
    /// UTF-8 without a zero byte. A reliable subscriber's is its alone while it is attached (`Busy`).
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Reliable subscriber with a label: its cursor stays when it closes or dies, and the next one with the label goes on
    /// there, wherever it would begin otherwise. The publisher waits for it all the while, also when nobody is there: see
    /// [`Subscriber::unsubscribe`](crate::Receiver::unsubscribe).
    pub fn durable(mut self, yes: bool) -> Self {
        self.durable = yes;
        self
    }

    /// Subscriber: begins at the oldest message that is intact. A reliable one's default.
    pub fn from_oldest(self) -> Self {
        self.start(Start::Oldest)
    }

    /// Subscriber: begins after the newest message. A lossy one's default.
    pub fn from_now(self) -> Self {
        self.start(Start::Now)
    }

    /// Subscriber: begins with up to `messages` that were published before, as many as are intact.
    pub fn history(self, messages: u64) -> Self {
        self.start(Start::History(messages))
    }

    /// Subscriber: begins after the message with this number, or at the oldest intact one; the first message then says how
    /// many were lost. A number that the topic has not reached begins after the newest message.
    pub fn after_seq(self, seq: u64) -> Self {
        self.start(Start::AfterSeq(seq))
    }

    fn start(mut self, start: Start) -> Self {
        self.start = Some(start);
        self
    }

    /// Subscriber that nobody waits for: opens the file only for reading, as another user may (mode 0644). It is seen by
    /// nobody, and cannot be woken: it checks every millisecond while it waits. `open` only.
    pub fn read_only(mut self, yes: bool) -> Self {
        self.read_only = yes;
        self
    }

    segment_options!();

    end_options!();

    /// The publisher. One at a time, in the whole system. It goes on after what an earlier one published.
    ///
    /// # Errors
    /// `Busy` if the topic has a publisher; `InvalidArgument` for a subscriber's option, or if an existing topic is not as
    /// was asked; `Unsupported` for `eject_after` on an existing topic whose creator did not allow it; otherwise as for
    /// [`RingBuilder::sender`](crate::RingBuilder::sender).
    pub fn publisher(self) -> Result<Publisher> {
        self.publisher_while(&|| true)
    }

    /// [`publisher`](Self::publisher) for languages that have signals to handle: asks `go_on` every 10 ms while it waits,
    /// and gives `Interrupted` once it says no.
    #[doc(hidden)]
    pub fn publisher_while(self, go_on: &dyn Fn() -> bool) -> Result<Publisher> {
        let no = |given: bool, option: &str| if given { Err(self.not_for(option, "publisher")) } else { Ok(()) };
        no(self.policy.is_some(), "a policy")?;
        no(self.start.is_some(), "a place to begin")?;
        no(self.label.is_some(), "a label")?;
        no(self.durable, "durable")?;
        no(self.read_only, "read_only")?;
        if self.eject_after == Some(Duration::ZERO) {
            return Err(self.invalid("eject_after is 0: expected more, or leave it out to wait as long as it takes"));
        }
        let eject_after = self.eject_after.map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        let role = crate::facts::BYTE_PUBLISHER;
        let named = self.open(Some(role), Access::ReadWrite, go_on)?;
        let attached = |e: Error| self.attaching(e);
        let timestamps = self.timestamps;
        let side = |_: &mut NamedLink, _: &View| Ok(SideOptions::Publisher { eject_after, timestamps });
        let attachment = self.attachment(named, Access::ReadWrite, Access::ReadWrite, side).map_err(attached)?;
        Publisher::attach(attachment, self.end.policy, self.end.membarrier).map_err(attached)
    }

    /// A subscriber.
    ///
    /// # Errors
    /// `Busy` if every slot is taken or a live subscriber has the label, and that stays so until the
    /// [`timeout`](Self::timeout); `Unsupported` for a reliable one where the topic is [`lossy_only`](Self::lossy_only);
    /// `InvalidArgument` for a publisher's option, or one that the policy does not have; `PermissionDenied` for a reliable one
    /// that may not write the file; otherwise as for [`RingBuilder::receiver`](crate::RingBuilder::receiver).
    pub fn subscriber(self) -> Result<Subscriber> {
        self.subscriber_while(&|| true)
    }

    /// [`subscriber`](Self::subscriber) as [`publisher_while`](Self::publisher_while) is to `publisher`.
    #[doc(hidden)]
    pub fn subscriber_while(self, go_on: &dyn Fn() -> bool) -> Result<Subscriber> {
        let policy = self.policy.unwrap_or_default();
        let label = self.checked_label()?;
        self.check_subscriber(policy)?;
        let access = if self.read_only { Access::ReadOnly } else { Access::ReadWrite };
        let named = self.open(None, access, go_on)?;
        let attached = |e: Error| self.attaching(e);
        let geometry = named.valid.topic.expect("a segment of kind topic has a topic");
        if policy == Policy::Reliable && geometry.is_lossy_only() {
            let text = "the topic takes no reliable subscribers (its creator said lossy_only): subscribe with the policy lossy \
                        or latest";
            return Err(attached(Error::new(ErrorKind::Unsupported, text)));
        }
        let start = self.start.unwrap_or(match policy {
            Policy::Reliable => Start::Oldest,
            Policy::Lossy | Policy::Latest => Start::Now,
        });
        let wanted = Wanted {
            policy,
            start,
            label,
            durable: self.durable,
            writable: !self.read_only,
            membarrier_capable: self.end.membarrier && membarrier::is_available(),
        };
        let timeout = self.segment.timeout;
        let side = |link: &mut NamedLink, view: &View| {
            let mut attempts = Attempts::new(RACE_PAUSE_MIN);
            loop {
                let mut seats = Locks { link, timeout: timeout.max(RACE_TIMEOUT), go_on };
                match join(view, &wanted, &mut seats) {
                    // A killed predecessor has its label and its slot until the kernel has closed its files; another
                    // subscriber that looks for its slot has a lock for an instant.
                    Err(e) if e.kind() == ErrorKind::Busy => {
                        attempts.again(timeout.max(BUSY_INSTANT), e, &mut || go_on())?;
                    }
                    joined => return joined.map(SideOptions::Subscriber),
                }
            }
        };
        let data_access = if self.end.writable_views { Access::ReadWrite } else { Access::ReadOnly };
        let attachment = self.attachment(named, access, data_access, side).map_err(attached)?;
        Subscriber::attach(attachment, self.end.policy, self.end.membarrier).map_err(attached)
    }

    fn check_subscriber(&self, policy: Policy) -> Result<()> {
        if self.eject_after.is_some() {
            return Err(self.not_for("eject_after", "subscriber"));
        }
        if self.timestamps {
            return Err(self.not_for("timestamps", "subscriber"));
        }
        if self.durable && policy != Policy::Reliable {
            return Err(self.invalid("durable is for a reliable subscriber: the publisher keeps messages for no other"));
        }
        if self.durable && self.label.is_none() {
            return Err(self.invalid("a durable subscriber needs a label, by which the next one finds its cursor"));
        }
        if policy == Policy::Latest && self.start.is_some() {
            return Err(
                self.invalid("a subscriber with the policy latest reads the newest message: it begins nowhere else")
            );
        }
        if self.read_only && policy == Policy::Reliable {
            return Err(
                self.invalid("a reliable subscriber tells the publisher what it has read, so it cannot be read-only")
            );
        }
        if self.read_only && self.label.is_some() {
            return Err(self.invalid("a read-only subscriber cannot show a label: it writes nothing"));
        }
        if self.read_only && self.intent != Intent::Open {
            return Err(self.invalid("a read-only subscriber creates nothing: begin with open"));
        }
        Ok(())
    }

    fn checked_label(&self) -> Result<Option<Label>> {
        let Some(label) = &self.label else { return Ok(None) };
        let bytes = label.as_bytes();
        if bytes.is_empty() || bytes.len() > LABEL_MAX || bytes.contains(&0) {
            let text = format!(
                "the label '{}' of {} bytes: expected 1 to {LABEL_MAX} bytes of UTF-8 without a zero byte",
                label.escape_debug(),
                bytes.len()
            );
            return Err(self.invalid(&text));
        }
        let mut padded = [0; LABEL_MAX];
        padded[..bytes.len()].copy_from_slice(bytes);
        Ok(Some(padded))
    }

    fn invalid(&self, text: &str) -> Error {
        self.attaching(Error::new(ErrorKind::InvalidArgument, text))
    }

    fn not_for(&self, option: &str, side: &str) -> Error {
        self.invalid(&format!("{option} is not for a {side}"))
    }

    fn attaching(&self, e: Error) -> Error {
        e.context(format_args!("attaching to the topic '{}'", self.name.to_string_lossy()))
    }

    fn flags(&self) -> u32 {
        let may_eject = self.may_eject || self.eject_after.is_some();
        u32::from(self.lossy_only) * TOPIC_LOSSY_ONLY + u32::from(may_eject) * TOPIC_MAY_EJECT
    }

    /// Opens or makes the segment.
    fn open(&self, role_byte: Option<u64>, access: Access, go_on: &dyn Fn() -> bool) -> Result<Named> {
        let options = |e: Error| e.context(format_args!("opening the topic '{}'", self.name.to_string_lossy()));
        self.segment.check(Some(self.intent)).map_err(options)?;
        if self.lossy_only && self.flags() & TOPIC_MAY_EJECT != 0 {
            let text = "a topic that takes no reliable subscribers has nobody to eject: say lossy_only or may_eject";
            return Err(self.invalid(text));
        }
        let granule = self.segment.placement.granule()?;
        let capacity = self.capacity.unwrap_or(CAPACITY_DEFAULT);
        let align = self.align.unwrap_or(TOPIC_ALIGN_MIN);
        let slots = self.slots.unwrap_or(TOPIC_SLOTS_DEFAULT);
        // Checked here although an existing topic may need none of it: a mistake shows on the first run.
        let spec = Spec::topic(capacity, align, slots, self.flags(), granule).map_err(options)?;
        // As it would be made: rounded, and with room for a message of this alignment.
        let made = spec.topic.as_ref().map(|topic| topic.capacity);
        let wanted = self.capacity.and(made);
        let check = |valid: &Valid| {
            let found = valid.topic.expect("a segment of kind topic has a topic");
            if self.segment.persistent && !valid.header.is_persistent() {
                let text = "it exists, and is not persistent: that is decided when a topic is made";
                return Err(Error::new(ErrorKind::InvalidArgument, text));
            }
            self.check_existing(&found, wanted)
        };
        named(
            &self.name,
            &Request {
                intent: self.intent,
                kind: Kind::Topic,
                spec: Some(spec.persistent(self.segment.persistent).named()),
                check: &check,
                role_byte,
                access,
                options: &self.segment,
                go_on,
            },
        )
    }

    fn check_existing(&self, found: &TopicGeometry, capacity: Option<u64>) -> Result<()> {
        let differs = |what: &str, wanted: u64, found: u64, unit: &str| {
            let text = format!(
                "it exists, and its {what} is {found}{unit}, not the {wanted} asked for; leave it out to take what is there"
            );
            Err(Error::new(ErrorKind::InvalidArgument, text))
        };
        if let Some(wanted) = capacity.filter(|&wanted| wanted != found.capacity) {
            return differs("capacity", wanted, found.capacity, " bytes");
        }
        if let Some(wanted) = self.align.filter(|&wanted| wanted != found.align) {
            return differs("alignment", wanted.into(), found.align.into(), " bytes");
        }
        if let Some(wanted) = self.slots.filter(|&wanted| wanted != found.slots) {
            return differs("number of slots", wanted.into(), found.slots.into(), "");
        }
        if self.lossy_only && !found.is_lossy_only() {
            let text = "it exists, and takes reliable subscribers: lossy_only is decided when a topic is made";
            return Err(Error::new(ErrorKind::InvalidArgument, text));
        }
        if self.eject_after.is_some() && !found.may_eject() {
            let text = "it exists, and its creator did not allow ejecting subscribers (may_eject): leave eject_after out, or \
                        create the topic anew";
            return Err(Error::new(ErrorKind::Unsupported, text));
        }
        if self.may_eject && !found.may_eject() {
            let text = "it exists, and subscribers cannot be ejected: may_eject is decided when a topic is made";
            return Err(Error::new(ErrorKind::InvalidArgument, text));
        }
        Ok(())
    }

    /// Maps the topic, and makes what one side stands on.
    fn attachment(
        &self,
        named: Named,
        access: Access,
        data_access: Access,
        side: impl FnOnce(&mut NamedLink, &View) -> Result<SideOptions>,
    ) -> Result<Attachment<Topic>> {
        let Named { file, header, valid, mut link } = named;
        let geometry = valid.topic.expect("a segment of kind topic has a topic");
        let TopicGeometry { data_offset, capacity, align, slots, flags, .. } = geometry;
        let area = SubscribersMap::map(file.as_fd(), &geometry, access)?;
        let head = area.head();
        let ring = RingGeometry { data_offset, capacity, align };
        let data = map_data(file.as_fd(), &ring, data_access, &self.segment.placement)?;
        let block = header.topic_block();
        let header = Arc::into_inner(header).expect("nobody else has it yet").with_area(area);
        // SAFETY: the area was mapped with this many slots; the header keeps it, and the attachment the header.
        let words = unsafe { Words::new(head, slots, flags) };
        let view = View { block: block.as_ptr(), words, data: data.as_ptr(), capacity, align };
        let side = side(&mut link, &view)?;
        let place = Place::new(words, link.slot_locks(), side);
        let fork = link.entry().clone();
        let origin = Origin::named("topic", &self.name);
        let link = Link::Named(link);
        Ok(Attachment { data, header: Arc::new(header), block, capacity, align, place, origin, link, fork })
    }
}

/// The locks of a named topic's slots.
struct Locks<'a> {
    link: &'a mut NamedLink,
    timeout: Duration,
    go_on: &'a dyn Fn() -> bool,
}

impl Seats for Locks<'_> {
    fn take(&mut self, index: u32) -> Result<bool> {
        self.link.try_slot(index)
    }

    fn give_back(&mut self, index: u32) {
        self.link.release_slot(index);
    }

    fn is_held(&self, index: u32) -> bool {
        self.link.slot_held_by_another(index)
    }

    fn begin_labelled(&mut self) -> Result<()> {
        let go_on = self.go_on;
        self.link.lock_join(self.timeout, &mut || go_on())
    }

    fn end_labelled(&mut self) {
        self.link.unlock_join();
    }
}
