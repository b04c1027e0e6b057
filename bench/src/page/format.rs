//! Numbers for people: three significant digits and a unit that fits, and text that stays text inside HTML.

/// A number and its unit; the unit may be empty.
pub(super) type Quantity = (String, &'static str);

/// The first unit in which the value, rounded to three digits, is below the next one.
fn scaled(value: f64, step: f64, units: &[&'static str]) -> Quantity {
    let mut value = value;
    let mut units = units.iter();
    let mut unit = units.next().copied().unwrap_or_default();
    for next in units {
        if value.abs() < step * (1.0 - 0.0005) {
            break;
        }
        value /= step;
        unit = next;
    }
    (digits(value), unit)
}

/// Three significant digits; whole numbers above a hundred.
pub(super) fn digits(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        v if v >= 99.95 => format!("{value:.0}"),
        v if v >= 9.995 => format!("{value:.1}"),
        v if v >= 0.0995 => format!("{value:.2}"),
        v if v >= 0.000_01 => {
            // Two significant digits suffice for what is nearly nothing.
            let places = (1.0 - v.log10().floor()) as usize;
            format!("{value:.places$}")
        }
        _ => "<0.00001".into(),
    }
}

pub(super) fn time(ns: f64) -> Quantity {
    scaled(ns, 1000.0, &["ns", "µs", "ms", "s"])
}

/// Operations a second.
pub(super) fn rate(per_s: f64) -> Quantity {
    scaled(per_s, 1000.0, &["/s", "k/s", "M/s", "G/s"])
}

pub(super) fn mib_rate(mib_per_s: f64) -> Quantity {
    scaled(mib_per_s, 1024.0, &["MiB/s", "GiB/s", "TiB/s"])
}

pub(super) fn bytes(bytes: f64) -> Quantity {
    scaled(bytes, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB"])
}

/// A message's or a buffer's size: exact where it is a whole number of its unit.
pub(super) fn size(bytes: u64) -> String {
    let (mut value, mut unit) = (bytes, "B");
    for next in ["KiB", "MiB", "GiB"] {
        if value == 0 || value % 1024 != 0 {
            break;
        }
        (value, unit) = (value / 1024, next);
    }
    if value < 10_000 {
        return format!("{value} {unit}");
    }
    let (number, unit) = self::bytes(bytes as f64);
    format!("{number} {unit}")
}

/// `2026-11-21 16:31` in UTC, from seconds since 1970.
pub(super) fn date(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Years that begin in March, in eras of 400: the leap day is the last of its year (Howard Hinnant's calendar).
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}", rest / 3600, rest % 3600 / 60)
}

/// `3 min 5 s`.
pub(super) fn duration(seconds: f64) -> String {
    let whole = seconds.round().max(0.0) as u64;
    match (whole / 60, whole % 60) {
        (0, seconds) => format!("{seconds} s"),
        (minutes, 0) => format!("{minutes} min"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    }
}

/// Text as HTML text or as a quoted attribute's value.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // What no HTML parser accepts as it is.
            '\0' => out.push('\u{FFFD}'),
            c => out.push(c),
        }
    }
    out
}

/// JSON that can stand inside a script element: no character in it means anything to an HTML parser.
pub(super) fn script_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_a_unit_that_fits() {
        let text = |(number, unit): Quantity| format!("{number} {unit}");
        assert_eq!(text(time(0.4567)), "0.46 ns");
        assert_eq!(text(time(109.96)), "110 ns");
        assert_eq!(text(time(999.4)), "999 ns");
        assert_eq!(text(time(999.7)), "1.00 µs");
        assert_eq!(text(time(40_210.0)), "40.2 µs");
        assert_eq!(text(time(2.5e9)), "2.50 s");
        assert_eq!(text(time(9.5e12)), "9500 s");
        assert_eq!(text(rate(178_400_000.0)), "178 M/s");
        assert_eq!(text(mib_rate(83_968.0)), "82.0 GiB/s");
        assert_eq!(text(bytes(1024.0 * 1023.9)), "1.00 MiB");
        assert_eq!(digits(0.0), "0");
        assert_eq!(digits(0.0123), "0.012");
        assert_eq!(digits(0.000_001), "<0.00001");
        assert_eq!(size(64 << 20), "64 MiB");
        assert_eq!(size(100_000_000), "95.4 MiB");
        assert_eq!(size(32), "32 B");
    }

    #[test]
    fn dates_and_durations() {
        assert_eq!(date(0), "1970-01-01 00:00");
        assert_eq!(date(951_782_399), "2000-02-28 23:59");
        assert_eq!(date(951_782_400), "2000-02-29 00:00");
        assert_eq!(date(1_795_278_660), "2026-11-21 16:31");
        assert_eq!(duration(59.6), "1 min");
        assert_eq!(duration(185.0), "3 min 5 s");
    }

    #[test]
    fn nothing_breaks_out() {
        assert_eq!(escape("<a b='c'>&\"\0"), "&lt;a b=&#39;c&#39;&gt;&amp;&quot;\u{FFFD}");
        let json = script_json("\"</script><!--\u{2028}&\"");
        assert_eq!(json, "\"\\u003c/script\\u003e\\u003c!--\\u2028\\u0026\"");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), "</script><!--\u{2028}&");
    }
}
