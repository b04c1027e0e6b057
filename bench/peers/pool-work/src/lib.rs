//! Real work, with a buffer pool and without: a checkpoint's file is loaded again and again (`checkpoint`), and requests of
//! mixed sizes are served by several threads (`http`). The programs are in `src/bin`; which allocator a program has is
//! decided when it is linked, so there is one for each.

pub mod checkpoint;
pub mod http;
pub mod random;
pub mod stats;
pub mod table;
pub mod usage;

/// What went wrong, in words.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What fallible functions give.
pub type Result<T> = std::result::Result<T, Failure>;

/// The allocator of the program, for tables and reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocator {
    /// The C library's.
    System,
    /// tikv-jemallocator.
    Jemalloc,
    /// mimalloc.
    Mimalloc,
}

impl Allocator {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::System, Self::Jemalloc, Self::Mimalloc];

    /// As tables and arguments spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Jemalloc => "jemalloc",
            Self::Mimalloc => "mimalloc",
        }
    }
}

/// Prints the outcome of a program, and gives its exit code.
pub fn exit(outcome: Result<()>) -> std::process::ExitCode {
    match outcome {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(cause) => {
            eprintln!("{cause}");
            std::process::ExitCode::FAILURE
        }
    }
}
