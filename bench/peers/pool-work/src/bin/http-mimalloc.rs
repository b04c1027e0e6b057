//! `http` with the allocator of its name.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    pool_work::exit(pool_work::http::main(pool_work::Allocator::Mimalloc))
}
