//! One reader of one image of a topic.

use std::os::fd::AsFd;

use ramway_agents::Event;

use super::{LONG, Result, Stage, files, locks, same, tried};
use crate::vectors::model::{Kind, NameAfter, Segment};
use crate::vectors::session::Reader;
use crate::vectors::topics::{Side, TopicImage, TopicReader};

/// One reader of one image.
pub fn topic(image: &TopicImage, expected: &TopicReader, reader: &dyn Reader) -> Result<()> {
    let mut stage = Stage::new(expected.end.as_deref())?;
    play(image, expected, reader, &mut stage).map_err(|cause| stage.explain(cause))
}

/// How it is opened. An error is not waited to pass.
fn command(expected: &TopicReader, path: &str) -> String {
    let label = expected.label.as_ref().map_or(String::new(), |label| format!(" label={label} durable=yes"));
    let how = match expected.side {
        Side::Publisher => "role=producer",
        Side::Reliable => "role=consumer policy=reliable",
        Side::Lossy => "role=consumer policy=lossy from=oldest",
        Side::Latest => "role=consumer policy=latest",
    };
    format!("open topic={path} timeout=0 {how}{label}")
}

fn play(image: &TopicImage, expected: &TopicReader, reader: &dyn Reader, stage: &mut Stage) -> Result<()> {
    let path = stage.folder.at("topic").display().to_string();
    let segment = Segment {
        name: image.name.clone(),
        about: image.about.clone(),
        class: image.class,
        kind: Kind::Ring,
        size: image.size,
        bytes: image.bytes.clone(),
        readers: Vec::new(),
    };
    let file = files::file(&segment, path.as_ref())?;
    // A description of its own, as every handle has one.
    let holder = match expected.held.as_slice() {
        [] => None,
        held => {
            let own = tried("opening it again", std::fs::File::options().read(true).write(true).open(&path))?;
            locks::hold_bytes(&own, held)?;
            Some(own)
        }
    };
    stage.start(reader, &command(expected, &path))?;
    if expected.open != "ok" {
        stage.error(&expected.open)?;
    } else if let Some(event) = attached(expected, stage)? {
        files::poke(file.as_fd(), &expected.then)?;
        let capacity: u64 = tried("attached", event.number("capacity"))?;
        same(&event, "max", capacity / 2 - 32)?;
        receive(expected, stage)?;
    }
    stage.ended()?;
    files::compare(file.as_fd(), &expected.leaves)?;
    let there = std::path::Path::new(&path).exists();
    drop(holder);
    match expected.name_after {
        Some(NameAfter::Stays) if !there => Err("the name is gone, but should stay".into()),
        Some(NameAfter::Gone) if there => Err("the name is still there, but nothing was left to deliver".into()),
        _ => Ok(()),
    }
}

/// `None`: it looked at the frames when it came, and found the damage that another finds when it receives.
fn attached(expected: &TopicReader, stage: &mut Stage) -> Result<Option<Event>> {
    let early = expected.end.as_deref() == Some("Corrupt") && expected.then.is_empty();
    let event = stage.expect(if early { "" } else { "attached" })?;
    match event.word.as_str() {
        "attached" => Ok(Some(event)),
        "error" if event.get("name") == Some("Corrupt") => Ok(None),
        _ => Err(format!("it says '{}', expected attached, or Corrupt", event.line)),
    }
}

/// What it receives, or that it sends.
fn receive(expected: &TopicReader, stage: &mut Stage) -> Result<()> {
    let end = expected.end.as_deref().unwrap_or("Empty");
    if expected.side == Side::Publisher {
        stage.tell("produce count=1 start=1 how=try sizes=0")?;
        return stage.end_as(super::Role::Producer, Some(end));
    }
    // A death is learned of by a wait, the others by any call.
    let take = if end == "PeerDead" { format!("take timeout={LONG}") } else { "take how=try".to_owned() };
    if let Some(lost) = &expected.lagged {
        stage.tell(&take)?;
        same(&stage.expect("end name=Lagged")?, "lost", lost)?;
    }
    for (i, message) in expected.messages.iter().enumerate() {
        stage.tell(&take)?;
        let event = stage.expect("message").map_err(|cause| format!("message {i}: {cause}"))?;
        same(&event, "type_id", message.type_id)?;
        same(&event, "tag", &message.tag)?;
        same(&event, "seq", &message.seq)?;
        same(&event, "lost", &message.lost)?;
        same(&event, "len", message.len)?;
        same(&event, "crc32", message.crc32)?;
    }
    // One that is dead stays dead.
    for _ in 0..if end == "Corrupt" { 2 } else { 1 } {
        stage.tell(&take)?;
        let event = stage.expect(&format!("end name={end}"))?;
        same(&event, "number", super::number(end)?)?;
    }
    Ok(())
}
