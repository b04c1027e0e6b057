//! What an agent says: one event a line.

use std::time::Instant;

use crate::Result;

/// One line of an agent: a word and what it says about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub word: String,
    /// All of the line.
    pub line: String,
    fields: Vec<(String, String)>,
    /// When the line was read.
    pub at: Instant,
}

impl Event {
    /// Takes `word key=value key=value ...` apart. `text=` takes everything to the end of the line; a word without `=`
    /// is a key with an empty value.
    pub fn parse(line: &str) -> Self {
        let (word, mut rest) = line.split_once(' ').unwrap_or((line, ""));
        let mut fields = Vec::new();
        while !rest.is_empty() {
            if let Some(text) = rest.strip_prefix("text=") {
                fields.push(("text".to_owned(), text.to_owned()));
                break;
            }
            let (field, more) = rest.split_once(' ').unwrap_or((rest, ""));
            rest = more;
            let (key, value) = field.split_once('=').unwrap_or((field, ""));
            if !key.is_empty() {
                fields.push((key.to_owned(), value.to_owned()));
            }
        }
        Self { word: word.to_owned(), line: line.to_owned(), fields, at: Instant::now() }
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.fields.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// The value of a key that must be there, as a number.
    ///
    /// # Errors
    /// It is missing, or no number.
    pub fn number<T: std::str::FromStr>(&self, key: &str) -> Result<T> {
        let value = self.get(key).ok_or_else(|| format!("`{}` without {key}=", self.word))?;
        value.parse().map_err(|_| format!("`{}` with {key}={value}, which is no number", self.word).into())
    }

    /// The value of a key that must be there, as numbers that commas separate; an empty one is none.
    ///
    /// # Errors
    /// It is missing, or one of them is no number.
    pub fn numbers<T: std::str::FromStr>(&self, key: &str) -> Result<Vec<T>> {
        let text = self.get(key).ok_or_else(|| format!("`{}` without {key}=", self.word))?;
        let number = |text: &str| text.parse().map_err(|_| format!("`{}` with {text} in {key}", self.word).into());
        text.split(',').filter(|text| !text.is_empty()).map(number).collect()
    }

    /// Compares values with what they must be, written as `key=value key=value`.
    ///
    /// # Errors
    /// One of them differs.
    pub fn expect(&self, fields: &str) -> Result<&Self> {
        for field in fields.split_whitespace() {
            let (key, value) = field.split_once('=').unwrap_or((field, ""));
            match self.get(key) {
                Some(found) if found == value => {}
                found => {
                    let found = found.unwrap_or("nothing");
                    return Err(format!("`{}` says {key}={found} where {value} was expected", self.word).into());
                }
            }
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_taken_apart() {
        let event = Event::parse("end name=Closed number=9 received=3 first=-1");
        assert_eq!(event.word, "end");
        assert_eq!(event.get("name"), Some("Closed"));
        assert_eq!(event.number::<i64>("first").expect("a number"), -1);
        assert_eq!(event.get("last"), None);
        assert!(event.expect("name=Closed received=3").is_ok());
        assert!(event.expect("received=4").is_err());
        assert!(event.number::<u32>("name").is_err());
        let event = Event::parse("measured samples=1,20 none=");
        assert_eq!(event.numbers::<u64>("samples").expect("numbers"), [1, 20]);
        assert!(event.numbers::<u64>("none").expect("numbers").is_empty() && event.numbers::<u64>("other").is_err());
    }

    #[test]
    fn text_goes_to_the_end_of_the_line() {
        let event = Event::parse("error name=Corrupt number=12 text=length = 4, text=no");
        assert_eq!(event.get("text"), Some("length = 4, text=no"));
        assert_eq!(Event::parse("closed").word, "closed");
        assert_eq!(Event::parse("last none").get("none"), Some(""));
        assert_eq!(Event::parse("").word, "");
    }
}
