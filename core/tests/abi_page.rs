//! `docs/ABI.md` is what ports are written from, so what it shows is compared with what the code writes.
//! Its tables are made from `format/facts.toml`, as the code's constants are: the tests of `format/` compare those.

mod support;

use ramway::tensor::Dtype;
use ramway::{Bus, Ring, Sender, Topic};
use std::io::{Read, Write};
use std::time::Duration;
use support::Dir;

const PAGE: &str = include_str!("../../docs/ABI.md");

/// The lines of each block that is fenced as ```hex and whose title begins with `title`, with the rest of the title.
fn hex_blocks(title: &str) -> Vec<(&'static str, Vec<&'static str>)> {
    let mut found = Vec::new();
    let mut lines = PAGE.lines();
    while let Some(line) = lines.next() {
        if let Some(rest) = line.strip_prefix("```hex ").and_then(|rest| rest.strip_prefix(title)) {
            found.push((rest, lines.by_ref().take_while(|line| *line != "```").collect()));
        }
    }
    assert!(!found.is_empty(), "docs/ABI.md has no block '{title}'");
    found
}

/// Compares `OFFSET  xx xx …` with the bytes there; a byte that is not hexadecimal may be anything.
fn compare(line: &str, bytes: &[u8]) {
    let (offset, rest) = line.trim().split_once(' ').unwrap();
    let offset = usize::from_str_radix(offset, 16).unwrap();
    for (i, shown) in rest.split_whitespace().enumerate() {
        if let Ok(shown) = u8::from_str_radix(shown, 16) {
            assert_eq!(bytes[offset + i], shown, "byte {:#x}, in the line '{line}'", offset + i);
        }
    }
}

/// Compares the blocks of this title with the file of a ring that begins at their `start` and was sent `messages`.
fn frames(title: &str, messages: impl Fn(&mut Sender)) {
    for (title, lines) in hex_blocks(title) {
        let (align, start) = title.split_once(" start=").unwrap();
        let (align, start) = (align.parse().unwrap(), start.parse::<usize>().unwrap());
        let dir = Dir::new();
        let path = dir.join("frames");
        let mut sender = Ring::create(&path).capacity(4096).align(align).sender().unwrap();
        if start != 0 {
            sender.send(1, &vec![0xAA; start - 16]).unwrap();
            Ring::open(&path).receiver().unwrap().recv().unwrap().release();
        }
        messages(&mut sender);
        let file = std::fs::read(&path).unwrap();
        assert_eq!(file.len(), 8192);
        for line in lines {
            match line.split_once(' ').unwrap() {
                ("data", line) => compare(line, &file[4096..]),
                ("tail", value) => {
                    let tail = u64::from_le_bytes(file[0x480..0x488].try_into().unwrap());
                    assert_eq!(tail, u64::from_str_radix(value.trim(), 16).unwrap(), "tail with {title}");
                }
                _ => panic!("what is '{line}'?"),
            }
        }
    }
}

#[test]
fn frames_are_as_shown() {
    frames("align=", |sender| {
        sender.send_tagged(7, 0x1122_3344_5566_7788, b"hello").unwrap();
        sender.send(8, b"").unwrap();
    });
}

#[test]
fn tensors_are_as_shown() {
    let elements: Vec<u8> = (1..=6).flat_map(|n| (n as f32).to_le_bytes()).collect();
    frames("tensor align=", |sender| sender.send_tensor_tagged(Dtype::F32, &[2, 3], 7, &elements).unwrap());
    assert!(PAGE.contains(&format!("the type id {:X} is a tensor", ramway::tensor::TYPE_ID)));
}

#[test]
fn frames_of_a_topic_are_as_shown() {
    for (title, lines) in hex_blocks("topic align=") {
        let (align, start) = title.split_once(" start=").unwrap();
        let dir = Dir::new();
        let path = dir.join("topic");
        let mut publisher = Topic::create(&path).capacity(4096).align(align.parse().unwrap()).publisher().unwrap();
        if start != "0" {
            for len in [2016, 1984] {
                publisher.send(1, &vec![0xAA; len]).unwrap();
            }
        }
        publisher.send_tagged(7, 0x1122_3344_5566_7788, b"hello").unwrap();
        publisher.send(8, b"").unwrap();
        let file = std::fs::read(&path).unwrap();
        let word = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap());
        let data = word(0x400) as usize;
        for line in lines {
            let (what, rest) = line.split_once(' ').unwrap();
            let number = || u64::from_str_radix(rest.trim(), 16).unwrap();
            match what {
                "data" => compare(rest, &file[data..]),
                "tail" => assert_eq!(word(0x480), number(), "tail with {title}"),
                "last" => assert_eq!(word(0x488), number(), "last with {title}"),
                _ => panic!("what is '{line}'?"),
            }
        }
    }
}

#[test]
fn header_page_is_as_shown() {
    let dir = Dir::new();
    let path = dir.join("header");
    let _sender = Ring::create(&path).capacity(4096).sender().unwrap();
    let file = std::fs::read(&path).unwrap();
    for (_, lines) in hex_blocks("header") {
        for line in lines {
            compare(line, &file);
        }
    }
}

#[test]
fn hello_is_as_shown() {
    let dir = Dir::new();
    let path = dir.join("hello");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let name = path.clone();
    let connector = std::thread::spawn(move || Bus::connector(&name).timeout(Duration::from_secs(10)).connect());
    let (mut stream, _) = listener.accept().unwrap();
    let mut hello = [0; 64];
    stream.read_exact(&mut hello).unwrap();
    // Half an answer and a hang-up end the attempt.
    stream.write_all(b"RAMBUS").unwrap();
    drop((stream, listener));
    assert!(connector.join().unwrap().is_err());
    for (_, lines) in hex_blocks("hello") {
        for line in lines {
            compare(line, &hello);
        }
    }
}
