//! `checkpoint` with the allocator of its name.

fn main() -> std::process::ExitCode {
    pool_work::exit(pool_work::checkpoint::main(pool_work::Allocator::System))
}
