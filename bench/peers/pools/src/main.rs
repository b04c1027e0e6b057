//! The worker of `ramway bench` for other libraries' pools of buffers: see `lib.rs`.

#[global_allocator]
static ALLOCATOR: ramway_bench::CountingAllocator = ramway_bench::CountingAllocator;

fn main() {
    match ramway_bench::child_main(&pools::ALL) {
        Some(code) => std::process::exit(code),
        None => eprintln!("a worker of `ramway bench`, which starts it"),
    }
}
