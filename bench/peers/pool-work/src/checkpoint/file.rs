//! A checkpoint's file: GPT-2's, made here, or one that is there already.

use super::model::{Made, Model, contents};
use crate::{Result, usage};
use safetensors::SafeTensors;
use safetensors::tensor::{Metadata, serialize_to_file};
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::ptr::{NonNull, null_mut};

/// The sum of a tensor's bytes, in which their places count.
pub fn checksum(bytes: &[u8]) -> u64 {
    const ODD: u64 = 0x9E37_79B9_7F4A_7C15;
    // Four sums beside each other, which do not wait for one another.
    let (blocks, rest) = bytes.as_chunks::<32>();
    let mut sums = [1u64, 2, 3, 4];
    for block in blocks {
        for (sum, word) in sums.iter_mut().zip(block.as_chunks::<8>().0) {
            *sum = (*sum ^ u64::from_le_bytes(*word)).wrapping_mul(ODD).rotate_left(29);
        }
    }
    let words = rest.iter().map(|&byte| u64::from(byte)).chain([bytes.len() as u64]);
    sums.into_iter().chain(words).fold(0, |sum, word| (sum ^ word).wrapping_mul(ODD).rotate_left(29))
}

/// A tensor of a file.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its name.
    pub name: String,
    /// Where it begins in the file.
    pub offset: u64,
    /// Bytes.
    pub len: usize,
    /// Their [`checksum`].
    pub sum: u64,
}

/// A file whose header has been read.
#[derive(Debug)]
pub struct Checkpoint {
    file: File,
    /// Its tensors, in the order in which they lie there, which leave no gap.
    pub tensors: Vec<Place>,
    /// Bytes of all tensors.
    pub bytes: u64,
    /// Of the whole file.
    len: u64,
    /// Whether it is on a disk, so that its pages can be dropped.
    pub on_disk: bool,
}

/// Read-only bytes of a file.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: bytes that nobody writes.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// The whole file; with `populate`, no page of it faults later.
    pub fn of(checkpoint: &Checkpoint, populate: bool) -> Result<Self> {
        Self::map(&checkpoint.file, checkpoint.len as usize, populate)
    }

    fn map(file: &File, len: usize, populate: bool) -> Result<Self> {
        let flags = libc::MAP_PRIVATE | if populate { libc::MAP_POPULATE } else { 0 };
        // SAFETY: a new mapping wherever the kernel puts it.
        let start = unsafe { libc::mmap(null_mut(), len, libc::PROT_READ, flags, file.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(format!("map the file: {}", std::io::Error::last_os_error()).into());
        }
        Ok(Self { start: NonNull::new(start.cast()).ok_or("mapped at 0")?, len })
    }

    /// All of it.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: mapped for as long as this lives; nobody changes a file that is being measured.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// How many bytes are in the page cache.
    fn cached(&self) -> Result<u64> {
        let mut pages = vec![0u8; self.len.div_ceil(4096)];
        // SAFETY: a byte for each page of the mapping.
        let status = unsafe { libc::mincore(self.start.as_ptr().cast(), self.len, pages.as_mut_ptr()) };
        if status != 0 {
            return Err(format!("look at the page cache: {}", std::io::Error::last_os_error()).into());
        }
        Ok(pages.iter().filter(|&&page| page & 1 != 0).count() as u64 * 4096)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: unmaps what `map` has mapped; nothing borrows from it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

impl Checkpoint {
    /// Makes a model's file in a directory, or uses the one of this name that is there, if `keep`; else its name is gone
    /// when this returns, and the file when it is closed.
    pub fn make(model: Model, directory: &Path, keep: bool) -> Result<Self> {
        let path = Self::path(model, directory, keep);
        let needed = model.bytes() + (1 << 20);
        if !(keep && path.is_file()) {
            let (free, _) = usage::file_system(directory)?;
            if free < needed {
                return Err(format!(
                    "{} has {} MB free and the file takes {} MB: name another directory with --dir",
                    directory.display(),
                    free / 1_000_000,
                    needed / 1_000_000
                )
                .into());
            }
            if let Err(cause) = Self::write(model, &path) {
                let _ = fs::remove_file(&path);
                return Err(cause);
            }
        }
        let opened = Self::open(&path);
        if !keep {
            fs::remove_file(&path)?;
        }
        let checkpoint = opened?;
        checkpoint.compare(model)?;
        Ok(checkpoint)
    }

    fn path(model: Model, directory: &Path, keep: bool) -> PathBuf {
        let Model { vocabulary, width, layers, .. } = model;
        let whose = if keep { String::new() } else { format!("-{}", std::process::id()) };
        directory.join(format!("gpt2-{layers}-{width}-{vocabulary}{whose}.safetensors"))
    }

    fn write(model: Model, path: &Path) -> Result<()> {
        let tensors = model.tensors().into_iter().map(|(name, shape)| (name.clone(), Made { name, shape }));
        let about = HashMap::from([("format".to_owned(), "pt".to_owned())]);
        serialize_to_file(tensors, Some(about), path).map_err(|cause| format!("{}: {cause}", path.display()))?;
        // What is not on the disk cannot be dropped from the page cache.
        Ok(File::open(path)?.sync_all()?)
    }

    /// Names, shapes and bytes must be the model's.
    fn compare(&self, model: Model) -> Result<()> {
        let mut expected: HashMap<_, _> = model.tensors().into_iter().collect();
        for place in &self.tensors {
            let shape = expected.remove(&place.name).ok_or_else(|| format!("no model has {}", place.name))?;
            let len = shape.iter().product::<usize>() * 4;
            if place.len != len {
                return Err(format!("{} has {} bytes, not {len}", place.name, place.len).into());
            }
            if place.sum != checksum(&contents(&place.name, len)) {
                return Err(format!("the bytes of {} are not those that were written", place.name).into());
            }
        }
        match expected.keys().next() {
            Some(name) => Err(format!("the file lacks {name}").into()),
            None => Ok(()),
        }
    }

    /// A safetensors file that is there. The sums are those of its bytes as `pread` gives them now.
    pub fn open(path: &Path) -> Result<Self> {
        let named = |cause: &dyn std::fmt::Display| format!("{}: {cause}", path.display());
        let file = File::open(path).map_err(|cause| named(&cause))?;
        let len = file.metadata()?.len();
        let mapping = Mapping::map(&file, len as usize, false).map_err(|cause| named(&cause))?;
        let (header, metadata) = SafeTensors::read_metadata(mapping.bytes()).map_err(|cause| named(&cause))?;
        let mut tensors = Self::places(&metadata, header as u64 + 8);
        drop(mapping);
        let mut bytes = Vec::new();
        for place in &mut tensors {
            bytes.resize(place.len, 0);
            file.read_exact_at(&mut bytes, place.offset).map_err(|cause| named(&cause))?;
            place.sum = checksum(&bytes);
        }
        let (_, memory) = usage::file_system(path)?;
        let bytes = tensors.iter().map(|place| place.len as u64).sum();
        Ok(Self { file, tensors, bytes, len, on_disk: !memory })
    }

    fn places(metadata: &Metadata, data: u64) -> Vec<Place> {
        let place = |(name, info): (String, &safetensors::tensor::TensorInfo)| {
            let (begin, end) = info.data_offsets;
            Place { name, offset: data + begin as u64, len: end - begin, sum: 0 }
        };
        let mut places: Vec<_> = metadata.tensors().into_iter().map(place).collect();
        places.retain(|place| place.len > 0);
        places.sort_by_key(|place| place.offset);
        places
    }

    /// The descriptor.
    pub fn fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// The same file once more, past the page cache.
    pub fn open_direct(&self) -> Result<File> {
        let path = format!("/proc/self/fd/{}", self.fd());
        let file = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path);
        file.map_err(|cause| format!("this file system has no O_DIRECT: {cause}").into())
    }

    /// Drops the file from the page cache.
    pub fn forget(&self) -> Result<()> {
        if !self.on_disk {
            return Err("the file is in memory, not on a disk: name a directory on a disk with --dir".into());
        }
        // SAFETY: plain values.
        unsafe { libc::posix_fadvise(self.fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        let left = Mapping::of(self, false)?.cached()?;
        // Some pages may be in flight to nowhere; a twentieth would be seen in the time.
        if left > self.len / 20 {
            return Err(format!("the page cache keeps {} MB of the file", left / 1_000_000).into());
        }
        Ok(())
    }

    /// Reads the file into the page cache.
    pub fn remember(&self) -> Result<()> {
        let mut bytes = vec![0; 1 << 20];
        let mut offset = 0;
        loop {
            match self.file.read_at(&mut bytes, offset)? {
                0 => return Ok(()),
                len => offset += len as u64,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_lengths_count_in_a_checksum() {
        let bytes: Vec<u8> = (0..100).collect();
        let sum = checksum(&bytes);
        for other in [[&bytes[32..64], &bytes[..32], &bytes[64..]].concat(), bytes[..99].to_vec()] {
            assert_ne!(checksum(&other), sum);
        }
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 1;
            assert_ne!(checksum(&other), sum, "{at}");
        }
    }
}
