//! Sizes and durations: read from the command line, shown to people.

use std::time::Duration;

/// Reads a size in bytes: `4096`, `64K`, `1.5M`, `1Ki`, `2GiB`. All units are powers of 1024.
pub fn parse_size(text: &str) -> Result<u64, String> {
    match parse_size::Config::new().with_binary().parse_size(text) {
        Ok(bytes) if bytes <= i64::MAX as u64 => Ok(bytes),
        Ok(_) | Err(parse_size::Error::PosOverflow) => Err(format!("`{text}` is too large")),
        Err(_) => Err(format!(
            "`{text}` is not a size: expected a number of bytes, or one with K, M or G, such as 64K, 1.5M or 2GiB"
        )),
    }
}

/// Reads a size that is not 0.
pub fn parse_some_size(text: &str) -> Result<u64, String> {
    match parse_size(text)? {
        0 => Err("must be at least 1".into()),
        size => Ok(size),
    }
}

/// Reads a duration: `500ms`, `2s`, `1m 30s`; a bare number is seconds.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).map_err(|_| format!("`{text}` is not a duration"));
    }
    humantime::parse_duration(text).map_err(|error| format!("`{text}` is not a duration: {error} (try 500ms, 2s, 1m)"))
}

/// Reads a number in decimal or, after `0x`, in hexadecimal.
pub fn parse_type_id(text: &str) -> Result<u32, String> {
    let value = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => u32::from_str_radix(hex, 16),
        None => text.parse(),
    }
    .map_err(|_| format!("`{text}` is not a number from 0 to 0xfffeffff"))?;
    if value >= ramway::layout::TYPE_ID_RESERVED {
        return Err(format!("`{text}` is reserved: type ids from 0xffff0000 up are Ramway's own"));
    }
    Ok(value)
}

/// Reads permission bits in octal: `600`, `0644`.
pub fn parse_mode(text: &str) -> Result<u32, String> {
    match u32::from_str_radix(text, 8) {
        Ok(mode) if mode <= 0o777 => Ok(mode),
        _ => {
            Err(format!("`{text}` is not a mode: expected permission bits in octal, from 0 to 777, such as 600 or 644"))
        }
    }
}

/// As people read sizes: `17 B`, `64 KiB`, `1.5 MiB`.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = format!("{value:.1}");
    format!("{} {}", digits.strip_suffix(".0").unwrap_or(&digits), UNITS[unit])
}

/// As people read ages: the largest unit and the next one.
pub fn age(elapsed: Duration) -> String {
    let s = elapsed.as_secs();
    match s {
        0..60 => format!("{s}s"),
        60..3600 => format!("{}m {:02}s", s / 60, s % 60),
        3600..86400 => format!("{}h {:02}m", s / 3600, s % 3600 / 60),
        _ => format!("{}d {:02}h", s / 86400, s % 86400 / 3600),
    }
}

/// A duration from nanoseconds to seconds with three digits.
pub fn short(duration: Duration) -> String {
    let ns = duration.as_nanos() as f64;
    match ns {
        ..1e3 => format!("{ns:.0} ns"),
        ..1e6 => format!("{:.1} µs", ns / 1e3),
        ..1e9 => format!("{:.1} ms", ns / 1e6),
        _ => format!("{:.2} s", ns / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        assert_eq!(parse_size("4096"), Ok(4096));
        assert_eq!(parse_size("64k"), Ok(65536));
        assert_eq!(parse_size("1 MiB"), Ok(1 << 20));
        assert_eq!(parse_size("2G"), Ok(2 << 30));
        assert_eq!(parse_size("1.5M"), Ok(3 << 19));
        assert_eq!(parse_size("1Ki"), Ok(1024));
        assert_eq!(parse_size("64KiB"), Ok(65536));
        assert_eq!(parse_size("64kb"), Ok(65536));
        assert_eq!(parse_size("0.5 GiB"), Ok(1 << 29));
        assert_eq!(parse_size("17B"), Ok(17));
        assert_eq!(parse_size("9223372036854775807"), Ok(i64::MAX as u64));
        for wrong in [
            "",
            " ",
            "k",
            "KiB",
            "-1",
            ".5M",
            "1.5.5M",
            "0x10",
            "1 fish",
            "9223372036854775808",
            "1X",
            "99999999999999999999",
            "9999999999T",
        ] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
        assert!(parse_some_size("0").is_err());
    }

    #[test]
    fn durations_and_type_ids_are_read() {
        assert_eq!(parse_duration("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("2s"), Ok(Duration::from_secs(2)));
        assert!(parse_duration("-1").is_err());
        assert!(parse_duration("soon").is_err());
        assert_eq!(parse_type_id("0x10"), Ok(16));
        assert!(parse_type_id("0xffff0000").is_err());
        assert_eq!((parse_mode("600"), parse_mode("0644")), (Ok(0o600), Ok(0o644)));
        assert!(["", "8", "1000", "rw-r--r--", "-1"].into_iter().all(|wrong| parse_mode(wrong).is_err()));
    }

    #[test]
    fn sizes_and_ages_are_shown() {
        assert_eq!(size(17), "17 B");
        assert_eq!(size(65536), "64 KiB");
        assert_eq!(size(3 << 19), "1.5 MiB");
        assert_eq!(size((1 << 20) - 1), "1 MiB");
        assert_eq!(age(Duration::from_secs(3725)), "1h 02m");
        assert_eq!(short(Duration::from_micros(1500)), "1.5 ms");
    }
}
