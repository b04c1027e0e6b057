//! How `sub` writes messages.

use std::borrow::Cow;

use clap::ValueEnum;
use ramway::{Batch, MessageView, Topic};
use serde::Serialize;

use super::gaps::Gaps;
use crate::failure::Outcome;
use crate::incoming::{Sink, Write};
use crate::interrupt::Interrupt;
use crate::output;

/// One batch takes no more payload than this and one message. What a lossy subscriber takes is a copy each.
const BATCH_BYTES: u64 = 4 << 20;

/// What is written for each message.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// The messages as they are, one after another
    Raw,
    /// Each message and a newline, unless it ends with one
    Lines,
    /// A JSON object a line, with number, time, losses, type id and tag
    Json,
    /// Each message as hexadecimal digits and a newline
    Hex,
}

impl Format {
    /// Whether it says itself how many messages are lost.
    pub fn says_gaps(self) -> bool {
        self == Self::Json
    }
}

/// Messages of a topic in a format.
pub struct Formatted<'a> {
    sink: &'a mut Sink,
    format: Format,
    gaps: Gaps,
    /// An ejection is not said.
    quiet: bool,
    /// Lost by an ejection, to be told with the next message.
    lagged: u64,
    text: Vec<u8>,
}

impl<'a> Formatted<'a> {
    pub fn new(sink: &'a mut Sink, format: Format, gaps: Gaps, quiet: bool) -> Self {
        Self { sink, format, gaps, quiet, lagged: 0, text: Vec::new() }
    }

    /// Says what is not said yet.
    pub fn finish(&mut self) {
        self.gaps.say();
    }
}

impl Write<Topic> for Formatted<'_> {
    fn batch(&mut self, interrupt: &Interrupt, batch: &mut Batch<'_, Topic>) -> Outcome<(u64, u64)> {
        let Self { sink, format, gaps, lagged, text, .. } = self;
        let mut taken = 0;
        let mut messages = batch.iter();
        // Not `take_while`, which takes one message more than it gives.
        let messages = std::iter::from_fn(|| {
            if taken >= BATCH_BYTES {
                return None;
            }
            let message = messages.next()?;
            taken += message.len() as u64;
            gaps.add(message.lost());
            Some(message)
        });
        if *format == Format::Raw {
            return sink.write(interrupt, messages);
        }
        text.clear();
        let (mut bytes, mut count) = (0, 0);
        for message in messages {
            match format {
                Format::Json => json(text, &message, std::mem::take(lagged))?,
                Format::Hex => hex(text, &message),
                Format::Lines | Format::Raw => text.extend_from_slice(&message),
            }
            if *format != Format::Lines || message.last() != Some(&b'\n') {
                text.push(b'\n');
            }
            (bytes, count) = (bytes + message.len() as u64, count + 1);
        }
        sink.write(interrupt, std::iter::once(text.as_slice()))?;
        Ok((bytes, count))
    }

    fn lagged(&mut self, lost: u64) {
        self.lagged += lost;
        if self.quiet {
            return;
        }
        output::note(&format!(
            "ejected, because this command blocked the publisher for too long: {lost} message(s) are lost; it goes on at \
             the oldest message that is still there"
        ));
    }

    fn idle(&mut self) {
        self.gaps.say_in_time();
    }
}

/// A message as a line of JSON.
#[derive(Serialize)]
struct Line<'a> {
    /// The first message of a topic has 1.
    seq: u64,
    /// Nanoseconds since 1970.
    time_ns: Option<u64>,
    /// Messages that are missing right before this one.
    lost: u64,
    type_id: u32,
    tag: u64,
    len: usize,
    /// `utf-8` or `base64`: what `payload` is.
    encoding: &'static str,
    payload: Cow<'a, str>,
}

fn json(text: &mut Vec<u8>, message: &MessageView<'_, Topic>, lagged: u64) -> Outcome {
    let (encoding, payload) = match std::str::from_utf8(message) {
        Ok(payload) => ("utf-8", Cow::Borrowed(payload)),
        Err(_) => ("base64", Cow::Owned(base64(message))),
    };
    let line = Line {
        seq: message.seq(),
        time_ns: (message.time() != 0).then_some(message.time()),
        lost: message.lost() + lagged,
        type_id: message.type_id(),
        tag: message.tag(),
        len: message.len(),
        encoding,
        payload,
    };
    serde_json::to_writer(text, &line).map_err(|error| crate::failure::Failure::error(error.to_string()))
}

fn hex(text: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    text.reserve(bytes.len() * 2 + 1);
    for byte in bytes {
        text.push(DIGITS[usize::from(byte >> 4)]);
        text.push(DIGITS[usize::from(byte & 15)]);
    }
}

/// RFC 4648, section 4, with padding.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let mut bits = [0; 4];
        bits[1..=group.len()].copy_from_slice(group);
        let bits = u32::from_be_bytes(bits);
        for digit in 0..4 {
            let shown = DIGITS[(bits >> (18 - 6 * digit) & 63) as usize];
            text.push(if digit <= group.len() { char::from(shown) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{base64, hex};

    #[test]
    fn base64_is_that_of_the_rfc() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(base64(&[0xff, 0xfe, 0xfd, 0x3e]), "//79Pg==");
    }

    #[test]
    fn each_byte_is_two_digits() {
        let mut text = Vec::new();
        hex(&mut text, &[0, 9, 0xab, 0xff]);
        assert_eq!(text, b"0009abff");
    }
}
