//! `make facts`: writes what is generated from `facts.toml`.

fn main() {
    match ramway_format::write() {
        Ok(written) if written.is_empty() => {
            println!("everything that is generated from format/facts.toml is up to date")
        }
        Ok(written) => written.iter().for_each(|path| println!("wrote {path}")),
        Err(error) => {
            eprintln!("format/facts.toml: {error}");
            std::process::exit(1);
        }
    }
}
