//! The images of topics, played to the Rust core in this process.

use std::os::fd::AsFd;
use std::path::Path;

use ramway::{Error, Topic};
use ramway_conformance::vectors::files;
use ramway_conformance::vectors::model::{Class, Kind, NameAfter, Segment};
use ramway_conformance::vectors::topics::{Side, TopicImage, TopicMessage, TopicReader, Topics};

fn text() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../format/vectors/topics.json")).unwrap()
}

fn name(error: &Error) -> String {
    error.kind().name().to_owned()
}

/// What a reader received, and what ended it.
fn received(path: &str, reader: &TopicReader) -> (String, Vec<TopicMessage>, Option<String>) {
    let topic = Topic::open(path);
    let topic = match reader.side {
        Side::Lossy => topic.lossy().from_oldest(),
        Side::Latest => topic.latest(),
        Side::Publisher | Side::Reliable => topic.reliable(),
    };
    let topic = match &reader.label {
        Some(label) => topic.label(label.clone()).durable(true),
        None => topic,
    };
    let mut subscriber = match topic.subscriber() {
        Ok(subscriber) => subscriber,
        Err(error) => return (name(&error), Vec::new(), None),
    };
    let mut messages = Vec::new();
    loop {
        match subscriber.try_recv() {
            Ok(message) => messages.push(TopicMessage {
                type_id: message.type_id(),
                tag: message.tag().to_string(),
                seq: message.seq().to_string(),
                lost: message.lost().to_string(),
                len: message.len() as u64,
                crc32: crc32fast::hash(&message),
            }),
            Err(error) => return ("ok".into(), messages, Some(name(&error))),
        }
    }
}

fn published(path: &str) -> (String, Option<String>) {
    match Topic::open(path).publisher() {
        Ok(mut publisher) => {
            let sent = publisher.try_send(1, b"");
            ("ok".into(), Some(sent.map_or_else(|error| name(&error), |()| "sent".into())))
        }
        Err(error) => (name(&error), None),
    }
}

fn play(image: &TopicImage, reader: &TopicReader) -> files::Result<()> {
    let folder = tempfile::Builder::new().prefix("ramway-topics-").tempdir_in("/dev/shm").unwrap();
    let path = folder.path().join("topic");
    let segment = Segment {
        name: image.name.clone(),
        about: image.about.clone(),
        class: image.class,
        kind: Kind::Ring,
        size: image.size,
        bytes: image.bytes.clone(),
        readers: Vec::new(),
    };
    let file = files::file(&segment, &path)?;
    let path = path.to_str().unwrap();
    let found = if reader.side == Side::Publisher {
        let (open, end) = published(path);
        (open, Vec::new(), end)
    } else {
        received(path, reader)
    };
    // A subscriber may look at the frames when it comes, or when it receives.
    let refused_early = reader.end.as_deref() == Some("Corrupt") && found.0 == "Corrupt";
    if !refused_early && found != (reader.open.clone(), reader.messages.clone(), reader.end.clone()) {
        return Err(format!("it found {found:?}"));
    }
    files::compare(file.as_fd(), &reader.leaves)?;
    match reader.name_after {
        Some(NameAfter::Stays) if !Path::new(path).exists() => Err("the name is gone, but should stay".into()),
        Some(NameAfter::Gone) if Path::new(path).exists() => Err("the name is still there".into()),
        _ => Ok(()),
    }
}

#[test]
fn every_image_of_a_topic() {
    let topics: Topics = serde_json::from_str(&text()).unwrap();
    let mut failures = Vec::new();
    let mut played = 0;
    for image in &topics.topics {
        for reader in &image.readers {
            played += 1;
            if let Err(cause) = play(image, reader) {
                failures.push(format!("{} as {:?}: {cause}", image.name, reader.side));
            }
        }
    }
    assert!(failures.is_empty(), "{} of {played} failed:\n{}", failures.len(), failures.join("\n"));
    let hostile = topics.topics.iter().filter(|image| image.class == Class::Hostile).count();
    assert!(played > 100 && hostile > 20, "{played} readers, {hostile} hostile images");
}
