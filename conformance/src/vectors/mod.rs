//! The vectors: segment images and handshakes with what a reader must find in each.
//!
//! [`model`] is the JSON's shape, `image` writes bytes from `docs/ABI.md`'s offsets (and from nothing of `core/`),
//! `segments`, [`topics`], [`rpc`] and `handshake` are the collections, [`play`] plays one of them to a reader ([`session`]), real files,
//! memfds and sockets included, and [`run`] plays all of them to every language's program.

pub mod files;
mod handshake;
mod image;
mod json;
mod locks;
mod made;
pub mod model;
mod peer;
pub mod play;
mod report;
pub mod rpc;
mod segments;
pub mod session;
mod socket;
pub mod topics;

use std::path::Path;
use std::process::ExitCode;

use ramway_agents::languages;

use crate::{missing_is_failure, summary, work};
use model::{Class, Handshakes, Segments};
use report::{Failure, Tally};
use rpc::Rpc;
use session::Reader;
use topics::Topics;

/// What `ramway-conformance vectors` is asked for.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Only these languages (by directory or by name); more than once for several.
    #[arg(long)]
    pub language: Vec<String>,
    /// Only vectors whose name contains this.
    #[arg(long)]
    pub only: Option<String>,
    /// One JSON object instead of a table.
    #[arg(long)]
    pub json: bool,
    /// How many programs run at a time.
    #[arg(long, default_value_t = 8)]
    pub jobs: usize,
}

/// The text of `format/vectors/segments.json`.
pub fn segments_json() -> String {
    json::pretty(&segments::all())
}

/// The text of `format/vectors/topics.json`.
pub fn topics_json() -> String {
    json::pretty(&topics::all())
}

/// The text of `format/vectors/handshake.json`.
pub fn handshake_json() -> String {
    json::pretty(&handshake::all())
}

/// The text of `format/vectors/rpc.json`.
pub fn rpc_json() -> String {
    json::pretty(&rpc::all())
}

/// Every vector, as checked in.
pub struct Vectors {
    /// `segments.json`.
    pub segments: Segments,
    /// `topics.json`.
    pub topics: Topics,
    /// `handshake.json`.
    pub handshakes: Handshakes,
    /// `rpc.json`.
    pub rpc: Rpc,
}

impl Vectors {
    /// Reads the files.
    ///
    /// # Errors
    /// One is missing or is not what [`model`] says, in words.
    pub fn load() -> files::Result<Self> {
        fn read<T: serde::de::DeserializeOwned>(name: &str) -> files::Result<T> {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../format/vectors").join(name);
            let text = files::tried(name, std::fs::read_to_string(path))?;
            files::tried(name, serde_json::from_str(&text))
        }
        Ok(Self {
            segments: read("segments.json")?,
            topics: read("topics.json")?,
            handshakes: read("handshake.json")?,
            rpc: read("rpc.json")?,
        })
    }

    /// Everything that can be played, if its name contains `only`.
    pub fn jobs(&self, only: &str) -> Vec<Job> {
        let segments = self.segments.segments.iter().enumerate().filter(|(_, one)| one.name.contains(only));
        let segments = segments.flat_map(|(i, one)| (0..one.readers.len()).map(move |reader| Job::Segment(i, reader)));
        let topics = self.topics.topics.iter().enumerate().filter(|(_, one)| one.name.contains(only));
        let topics = topics.flat_map(|(i, one)| (0..one.readers.len()).map(move |reader| Job::Topic(i, reader)));
        let handshakes = self.handshakes.handshakes.iter().enumerate();
        let handshakes = handshakes.filter(|(_, one)| one.name.contains(only)).map(|(i, _)| Job::Handshake(i));
        let made = made::ALL.iter().enumerate().filter(|(_, one)| one.name().contains(only)).map(|(i, _)| Job::Made(i));
        let rpc = self.rpc_jobs().into_iter().filter(|&job| self.name(job).0.contains(only));
        segments.chain(topics).chain(handshakes).chain(made).chain(rpc).collect()
    }

    fn rpc_jobs(&self) -> Vec<Job> {
        let Rpc { servers, clients, handshakes, .. } = &self.rpc;
        let servers = (0..servers.len()).map(Job::Server);
        servers.chain((0..clients.len()).map(Job::Client)).chain((0..handshakes.len()).map(Job::RpcHandshake)).collect()
    }

    /// Plays one.
    ///
    /// # Errors
    /// What the reader did otherwise, in words.
    pub fn play(&self, job: Job, reader: &dyn Reader) -> files::Result<()> {
        match job {
            Job::Segment(i, role) => {
                let segment = &self.segments.segments[i];
                play::segment(segment, &segment.readers[role], reader)
            }
            Job::Topic(i, role) => {
                let image = &self.topics.topics[i];
                play::topic(image, &image.readers[role], reader)
            }
            Job::Handshake(i) => play::handshake(&self.handshakes.handshakes[i], &self.segments, reader),
            Job::Made(i) => play::made(made::ALL[i], reader),
            Job::Server(i) => play::rpc::server(&self.rpc.servers[i], reader),
            Job::Client(i) => play::rpc::client(&self.rpc.clients[i], &self.rpc, reader),
            Job::RpcHandshake(i) => play::rpc::handshake(&self.rpc.handshakes[i], &self.rpc, reader),
        }
    }

    /// The vector's name and the role that it is read in.
    pub fn name(&self, job: Job) -> (String, String) {
        match job {
            Job::Segment(i, role) => {
                let segment = &self.segments.segments[i];
                (segment.name.clone(), segment.readers[role].role.name().into())
            }
            Job::Topic(i, role) => {
                let image = &self.topics.topics[i];
                (image.name.clone(), image.readers[role].name())
            }
            Job::Handshake(i) => {
                let one = &self.handshakes.handshakes[i];
                (one.name.clone(), format!("{:?}", one.reader).to_lowercase())
            }
            Job::Made(i) => (made::ALL[i].name(), "maker".into()),
            Job::Server(i) => (self.rpc.servers[i].name.clone(), "server".into()),
            Job::Client(i) => (self.rpc.clients[i].name.clone(), "client".into()),
            Job::RpcHandshake(i) => (self.rpc.handshakes[i].name.clone(), "handshake".into()),
        }
    }
}

/// One vector in one role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Job {
    /// The image's and the reader's places.
    Segment(usize, usize),
    /// The places of a topic's image and of the reader.
    Topic(usize, usize),
    /// The exchange's place.
    Handshake(usize),
    /// The place of something that the language makes itself.
    Made(usize),
    /// The place of what an RPC's server must answer.
    Server(usize),
    /// The place of what an RPC's client must make of a server.
    Client(usize),
    /// The place of an RPC's handshake.
    RpcHandshake(usize),
}

/// Plays the vectors to the languages and prints what came of it.
pub fn run(args: &Args) -> ExitCode {
    match count(args) {
        Ok((passed, failed, skipped)) => {
            let missing = missing_is_failure(skipped);
            if !args.json {
                println!("{}", summary(passed, failed + missing, skipped - missing));
            }
            if failed + missing == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(cause) => {
            eprintln!("ramway-conformance: {cause}");
            ExitCode::FAILURE
        }
    }
}

/// The same, and gives how many passed, how many failed, and how many languages were skipped.
///
/// # Errors
/// No vector is chosen, or a program cannot be built.
pub fn count(args: &Args) -> ramway_agents::Result<(usize, usize, usize)> {
    let tallies = tallies(args)?;
    report::print(&tallies, args.json);
    let sum = |of: fn(report::Count) -> u32| tallies.iter().map(|tally| of(tally.total()) as usize).sum();
    let skipped = tallies.iter().filter(|tally| tally.skipped.is_some()).count();
    Ok((sum(|count| count.passed), sum(|count| count.failed), skipped))
}

fn tallies(args: &Args) -> ramway_agents::Result<Vec<Tally>> {
    let vectors = Vectors::load()?;
    let jobs = vectors.jobs(args.only.as_deref().unwrap_or(""));
    if jobs.is_empty() {
        return Err("no vector has such a name".into());
    }
    let mut tallies = Vec::new();
    for language in languages::all(&args.language)? {
        let mut tally = Tally::new(&language.name, language.missing.clone());
        if language.missing.is_none() {
            let plays = |job: &&Job| match job {
                Job::Topic(..) => language.topics,
                Job::Server(_) | Job::Client(_) | Job::RpcHandshake(_) => language.rpc,
                _ => true,
            };
            let jobs: Vec<Job> = jobs.iter().filter(plays).copied().collect();
            let results = work::each(&jobs, args.jobs, |_, &job| vectors.play(job, &language));
            for (&job, result) in jobs.iter().zip(results) {
                let (vector, role) = vectors.name(job);
                let failure = result.err().map(|text| Failure { vector, role, text });
                let column: fn(&mut Tally) -> &mut report::Count = match job {
                    Job::Handshake(_) | Job::RpcHandshake(_) => |tally| &mut tally.handshake,
                    Job::Server(i) if vectors.rpc.servers[i].class == Class::Good => |tally| &mut tally.good,
                    Job::Client(i) if vectors.rpc.clients[i].class == Class::Good => |tally| &mut tally.good,
                    Job::Server(_) | Job::Client(_) => |tally| &mut tally.hostile,
                    Job::Made(_) => |tally| &mut tally.made,
                    Job::Topic(i, _) if vectors.topics.topics[i].class == Class::Good => |tally| &mut tally.good,
                    Job::Topic(..) => |tally| &mut tally.hostile,
                    Job::Segment(i, _) if vectors.segments.segments[i].class == Class::Good => |tally| &mut tally.good,
                    Job::Segment(..) => |tally| &mut tally.hostile,
                };
                tally.note(column, failure);
            }
        }
        tallies.push(tally);
    }
    Ok(tallies)
}
