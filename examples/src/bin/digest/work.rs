//! The threads: readers take file after file, and each file's chunks go to one hasher.

use crate::memory::Memory;
use bytes::Bytes;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};

/// What a file came to.
pub struct Sum {
    pub sha256: [u8; 32],
    pub bytes: u64,
}

type Results = Sender<(usize, io::Result<Sum>)>;

/// A part of the file of this number.
struct Message {
    file: usize,
    part: Part,
}

enum Part {
    Chunk(Bytes),
    End(io::Result<()>),
}

/// Chunks that wait for a hasher. With a pool its limit may be reached before.
const QUEUE: usize = 16;

/// Nobody needs the results any more.
struct Stopped;

/// Hashes all files and sends a result for each, in whatever order, while `meanwhile` runs on this thread; when that has
/// dropped the receiver, the threads end.
pub fn run<T>(
    memory: &Memory,
    files: &[PathBuf],
    chunk: usize,
    readers: usize,
    hashers: usize,
    results: Results,
    meanwhile: impl FnOnce() -> T,
) -> T {
    let next = AtomicUsize::new(0);
    std::thread::scope(|threads| {
        let mut queues = Vec::new();
        for _ in 0..hashers {
            let (queue, messages) = mpsc::sync_channel(QUEUE);
            queues.push(queue);
            let results = results.clone();
            threads.spawn(move || hash(memory, messages, results));
        }
        for _ in 0..readers {
            let (queues, next) = (queues.clone(), &next);
            threads.spawn(move || {
                // Relaxed: only who takes which number matters.
                while let Some((file, path)) = take(files, next.fetch_add(1, Ordering::Relaxed)) {
                    let queue = &queues[file % hashers];
                    let end = match read(memory, file, path, chunk, queue) {
                        Ok(end) => end,
                        Err(Stopped) => break,
                    };
                    if queue.send(Message { file, part: Part::End(end) }).is_err() {
                        break;
                    }
                }
            });
        }
        drop((queues, results));
        meanwhile()
    })
}

fn take(files: &[PathBuf], file: usize) -> Option<(usize, &Path)> {
    files.get(file).map(|path| (file, path.as_path()))
}

/// Sends a file's chunks; the inner result is that of reading it.
fn read(
    memory: &Memory,
    file: usize,
    path: &Path,
    chunk: usize,
    queue: &SyncSender<Message>,
) -> Result<io::Result<()>, Stopped> {
    let source = match File::open(path) {
        Ok(source) => source,
        Err(error) => return Ok(Err(error)),
    };
    let length = source.metadata().map_or(0, |metadata| metadata.len());
    // A byte more than there is, so that its end is found in the same buffer; the file may also grow, and one of /proc says
    // that it is empty. All its chunks are of one length, for which the first one's memory will do.
    let room = usize::try_from(length.saturating_add(1)).unwrap_or(chunk).clamp(4096, chunk);
    loop {
        let bytes = match memory.read(&source, room) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Err(Stopped),
            Err(error) => return Ok(Err(error)),
        };
        let end = bytes.len() < room;
        queue.send(Message { file, part: Part::Chunk(bytes) }).map_err(|_| Stopped)?;
        if end {
            return Ok(Ok(()));
        }
    }
}

/// Takes chunks of several files, as they come: a hasher that took one file at a time would leave the memory of the others'
/// chunks taken, which readers of this one may be waiting for.
fn hash(memory: &Memory, messages: Receiver<Message>, results: Results) {
    let mut open: HashMap<usize, (Sha256, u64)> = HashMap::new();
    for Message { file, part } in messages {
        match part {
            Part::Chunk(bytes) => {
                let (sha256, length) = open.entry(file).or_default();
                sha256.update(&bytes);
                *length += bytes.len() as u64;
                memory.give_back(bytes);
            }
            Part::End(read) => {
                let (sha256, bytes) = open.remove(&file).unwrap_or_default();
                let sum = read.map(|()| Sum { sha256: sha256.finalize().into(), bytes });
                if results.send((file, sum)).is_err() {
                    memory.stop();
                    return;
                }
            }
        }
    }
}
