//! One publisher and three subscribers: who they are, how they open the topic, and what must come out of the numbers that a
//! subscriber reports.

use std::array;

use ramway_agents::{Event, Language, Result};

use crate::run::{Program, Scene};

/// Who plays, and which of the variants.
pub struct Cast<'a> {
    pub publisher: &'a Language,
    pub subscribers: [&'a Language; 3],
    pub policies: [&'static str; 3],
    /// Which of the variants that are spread over the casts this one takes: waits, ways to send, alignments, ….
    pub variant: usize,
    /// How many messages make a long stream.
    pub messages: u64,
    /// As in a [`Pair`](super::super::pair::Pair).
    pub fresh: bool,
    pub random: fastrand::Rng,
}

/// What is created.
#[derive(Clone, Copy)]
pub struct Plan {
    pub capacity: u64,
    pub align: u64,
    /// Whether the publisher creates the topic, else the first subscriber.
    pub publisher_creates: bool,
    /// Milliseconds.
    pub eject_after: Option<u64>,
    /// The first subscriber has the label `r`, and is durable.
    pub durable: bool,
}

/// The payload of the scenarios that count how many messages fit: with its header 128 bytes.
pub const SIZE: u64 = 96;
/// How many of them a topic of one page takes.
pub const FITS: u64 = 32;

impl Plan {
    /// The longest message.
    pub fn longest(&self) -> u64 {
        self.capacity / 2 - 32
    }

    /// How many messages of `size` bytes the topic takes while a reliable subscriber reads nothing.
    pub fn fits(&self, size: u64) -> u64 {
        self.capacity / (32 + size).next_multiple_of(self.align)
    }

    fn created(&self) -> String {
        format!(" create=yes capacity={} align={}", self.capacity, self.align)
    }

    /// Waits for `attached` and checks what it says about the topic.
    pub fn attached(&self, program: &mut Program) -> Result<Event> {
        let event = program.expect("attached")?;
        let expected = format!("pid={} capacity={} max={}", program.pid(), self.capacity, self.longest());
        event.expect(&expected)?;
        Ok(event)
    }
}

impl Cast<'_> {
    /// One of several, by the variant.
    pub fn pick<T: Copy>(&self, of: &[T]) -> T {
        of[self.variant % of.len()]
    }

    /// What most scenarios do: 64 KiB, made by either side.
    pub fn plan(&self) -> Plan {
        Plan {
            capacity: 65536,
            align: 32,
            publisher_creates: self.variant.is_multiple_of(2),
            eject_after: None,
            durable: false,
        }
    }

    /// A topic of one page, for what depends on how many messages fit.
    pub fn page(&self) -> Plan {
        Plan { capacity: 4096, ..self.plan() }
    }

    /// One of the programs spins at most: four that spin on two processors would wait for each other's time slices.
    fn wait(&self, place: usize) -> &'static str {
        ["block", "hybrid", "block", "spin", "hybrid"][(self.variant + place) % 5]
    }

    /// What the programs call the topic.
    fn topic(&self, scene: &Scene) -> String {
        scene.name("t", self.fresh)
    }

    fn publisher(&self, scene: &Scene, plan: &Plan, creates: bool, more: &str, label: &str) -> Result<Program> {
        let program = scene.agent(self.publisher, label, self.fresh)?;
        self.publish(program, scene, plan, creates, more)
    }

    fn publish(&self, mut program: Program, scene: &Scene, plan: &Plan, creates: bool, more: &str) -> Result<Program> {
        let made = if creates { plan.created() } else { String::new() };
        let eject = plan.eject_after.map_or(String::new(), |ms| format!(" eject_after={ms}"));
        let topic = self.topic(scene);
        program.tell(&format!("open role=producer topic={topic} wait={}{made}{eject}{more}", self.wait(0)))?;
        Ok(program)
    }

    fn subscriber(&self, scene: &Scene, plan: &Plan, place: usize, creates: bool) -> Result<Program> {
        let policy = self.policies[place];
        let mut program = scene.agent(self.subscribers[place], policy, self.fresh)?;
        let made = if creates { plan.created() } else { String::new() };
        let durable = if plan.durable && place == 0 { " label=r durable=yes" } else { "" };
        let (topic, wait) = (self.topic(scene), self.wait(place + 1));
        program.tell(&format!("open role=consumer topic={topic} policy={policy} wait={wait}{made}{durable}"))?;
        Ok(program)
    }

    /// All four, either side first, and all attached. The publisher waits for the reliable subscribers in every second
    /// variant.
    pub fn all(&self, scene: &Scene, plan: &Plan) -> Result<(Program, [Program; 3])> {
        let reliable = self.policies.iter().filter(|policy| **policy == "reliable").count();
        if !(self.variant / 2).is_multiple_of(2) {
            let mut subscribers = self.three(scene, plan)?;
            let mut publisher = self.publisher(scene, plan, plan.publisher_creates, "", "publisher")?;
            plan.attached(&mut publisher)?;
            for one in &mut subscribers {
                plan.attached(one)?;
            }
            return Ok((publisher, subscribers));
        }
        let wait_for = format!(" wait_for={reliable}");
        let mut publisher = self.publisher(scene, plan, plan.publisher_creates, &wait_for, "publisher")?;
        if reliable > 0 && publisher.any() {
            return Err("the publisher did not wait for a reliable subscriber".into());
        }
        let mut subscribers = self.three(scene, plan)?;
        for one in &mut subscribers {
            plan.attached(one)?;
        }
        plan.attached(&mut publisher)?;
        Ok((publisher, subscribers))
    }

    fn three(&self, scene: &Scene, plan: &Plan) -> Result<[Program; 3]> {
        let start = |place| self.subscriber(scene, plan, place, place == 0 && !plan.publisher_creates);
        Ok([start(0)?, start(1)?, start(2)?])
    }

    /// The publisher alone, of a new topic.
    pub fn publish_first(&self, scene: &Scene, plan: &Plan) -> Result<Program> {
        let mut program = self.publisher(scene, plan, true, "", "publisher")?;
        plan.attached(&mut program)?;
        Ok(program)
    }

    /// A successor of the publisher on the topic that is there.
    pub fn next_publisher(&self, scene: &Scene, plan: &Plan) -> Result<Program> {
        let program = scene.successor(self.publisher, "next publisher", self.fresh)?;
        let mut program = self.publish(program, scene, plan, false, "")?;
        plan.attached(&mut program)?;
        Ok(program)
    }

    /// A subscriber in another place of the cast's languages, opened with what `keys` say.
    pub fn subscribe(&self, scene: &Scene, plan: &Plan, place: usize, keys: &str) -> Result<Program> {
        let mut program = scene.agent(self.subscribers[place], keys, self.fresh)?;
        let topic = self.topic(scene);
        program.tell(&format!("open role=consumer topic={topic} wait={} {keys}", self.wait(place + 1)))?;
        plan.attached(&mut program)?;
        Ok(program)
    }
}

/// What three subscribers say that were there before the first message, once the stream has ended: each has the last of
/// `sent` messages, and what it received and what it was told that it lost is just as many as were sent. A reliable one lost
/// nothing.
pub fn whole(subscribers: &mut [Program; 3], policies: [&str; 3], name: &str, sent: u64) -> Result<[Event; 3]> {
    let mut ends = Vec::new();
    for (program, policy) in subscribers.iter_mut().zip(policies) {
        let end = program.expect("end")?;
        end.expect(&format!("name={name} last={}", sent - 1))?;
        sums(&end, sent)?;
        if policy == "reliable" {
            end.expect("lost=0 first=0")?;
        }
        ends.push(end);
    }
    let mut ends = ends.into_iter();
    Ok(array::from_fn(|_| ends.next().expect("one for each subscriber")))
}

/// Received and lost are so many.
pub fn sums(end: &Event, sent: u64) -> Result<()> {
    let (received, lost): (u64, u64) = (end.number("received")?, end.number("lost")?);
    if received + lost == sent {
        return Ok(());
    }
    Err(format!("{received} received and {lost} lost are not the {sent} that were sent").into())
}

/// All end in an orderly way.
pub fn finish(subscribers: [Program; 3]) -> Result<()> {
    subscribers.into_iter().try_for_each(Program::finish)
}

/// Gives each the same command.
pub fn tell(subscribers: &mut [Program; 3], command: &str) -> Result<()> {
    subscribers.iter_mut().try_for_each(|program| program.tell(command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_add_up() {
        let end = |text: &str| Event::parse(&format!("end name=Closed {text}"));
        assert!(sums(&end("received=3 lost=4"), 7).is_ok());
        assert!(sums(&end("received=3 lost=4"), 8).is_err() && sums(&end("received=7"), 7).is_err());
    }

    #[test]
    fn as_many_fit_as_the_format_says() {
        let plan =
            |capacity, align| Plan { capacity, align, publisher_creates: true, eject_after: None, durable: false };
        assert_eq!(plan(4096, 32).fits(SIZE), FITS);
        assert_eq!((plan(4096, 32).fits(2016), plan(4096, 2048).fits(0), plan(65536, 32).fits(200)), (2, 2, 256));
    }
}
