//! `checkpoint` with the allocator of its name.

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> std::process::ExitCode {
    pool_work::exit(pool_work::checkpoint::main(pool_work::Allocator::Jemalloc))
}
