//! The configuration as the file has it: each value with its line, not checked yet.

use std::fmt;
use std::ops::Range;

use serde::de::{self, Deserialize, Deserializer, Visitor};
pub use toml::Spanned;

use super::problem::{Place, Problem};

/// A value and where it stands, if it is there.
pub type Maybe<T> = Option<Spanned<T>>;

/// All of it.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// `[link]`.
    pub link: Maybe<Link>,
    /// `[metrics]`.
    pub metrics: Maybe<Metrics>,
    /// `[[rule]]`.
    #[serde(default)]
    pub rule: Vec<Spanned<Rule>>,
}

/// `[link]`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the fields are those of `super::Link`")]
pub struct Link {
    pub prefix: Maybe<String>,
    pub zenoh: Maybe<String>,
    pub mode: Maybe<String>,
    pub listen: Maybe<Vec<Spanned<String>>>,
    pub connect: Maybe<Vec<Spanned<String>>>,
    pub discovery: Maybe<bool>,
    pub tls: Maybe<Tls>,
}

/// `[link.tls]`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the fields are those of `super::Tls`")]
pub struct Tls {
    pub ca: Maybe<String>,
    pub certificate: Maybe<String>,
    pub key: Maybe<String>,
    pub mutual: Maybe<bool>,
}

/// `[metrics]`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the field is that of `super::Config`")]
pub struct Metrics {
    pub listen: Maybe<String>,
}

/// `[[rule]]`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the fields are those of `super::Rule` and of its kinds")]
pub struct Rule {
    pub names: Maybe<Vec<Spanned<String>>>,
    pub except: Maybe<Vec<Spanned<String>>>,
    pub kind: Maybe<String>,
    pub direction: Maybe<String>,
    pub delivery: Maybe<String>,
    pub on_disconnect: Maybe<String>,
    pub eject_after: Maybe<Quantity>,
    pub rate: Maybe<Quantity>,
    pub every: Maybe<Quantity>,
    pub prefix: Maybe<String>,
    pub window: Maybe<Quantity>,
    pub chunk: Maybe<Quantity>,
    pub capacity: Maybe<Quantity>,
    pub label: Maybe<String>,
    pub max_connections: Maybe<Quantity>,
}

/// A number, or a text with a unit in it: `65536` and `"64K"`, `0.5` and `"500ms"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quantity(pub String);

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl Visitor<'_> for Any {
            type Value = Quantity;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, or a text with a unit such as \"64K\" or \"500ms\"")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Quantity, E> {
                Ok(Quantity(text.to_owned()))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Quantity, E> {
                Ok(Quantity(number.to_string()))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Quantity, E> {
                Ok(Quantity(number.to_string()))
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Quantity, E> {
                Ok(Quantity(number.to_string()))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

impl File {
    /// Reads the text. A text that is not TOML, an unknown key and a value of the wrong type are found one at a time.
    pub(super) fn parse(text: &str) -> Result<Self, Problem> {
        toml::from_str(text).map_err(|error| {
            let place = error.span().map_or(Place::Whole, |span| Place::Line(line(text, &span)));
            let said = error.message().trim_end().replace('\n', "; ");
            let advice = if said.contains("unknown field") { "; remove it, or mend its name" } else { "" };
            Problem { place, text: format!("{said}{advice}") }
        })
    }
}

/// The line where a span begins, counted from 1.
pub(super) fn line(text: &str, span: &Range<usize>) -> usize {
    let before = &text.as_bytes()[..span.start.min(text.len())];
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}

/// A value that stands in no file.
pub fn bare<T>(value: T) -> Spanned<T> {
    Spanned::new(0..0, value)
}
