//! The shape of `facts.toml`, and the facts as one language sees them.

use std::collections::HashSet;

use serde::Deserialize;

use crate::Result;

/// All of `facts.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    pub(crate) errors: Vec<ErrorFact>,
    pub(crate) element_types: Vec<ElementType>,
    section: Vec<Section>,
    layout: Vec<Layout>,
    list: Vec<List>,
}

/// An error: its number, its name, and its texts.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ErrorFact {
    pub(crate) number: usize,
    /// `NotFound`.
    pub(crate) name: String,
    /// What every language says where there is nothing more to say.
    pub(crate) text: String,
    doc: String,
    page: Option<String>,
    c: Option<String>,
}

impl ErrorFact {
    /// What the number means, as a sentence.
    pub(crate) fn doc(&self) -> String {
        sentence(&self.doc)
    }

    /// The same for C.
    pub(crate) fn c(&self) -> String {
        sentence(self.c.as_ref().unwrap_or(&self.doc))
    }

    /// The cell of the page.
    pub(crate) fn page(&self) -> &str {
        self.page.as_ref().unwrap_or(&self.doc)
    }
}

/// A type of a tensor's elements.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ElementType {
    /// NumPy's or `ml_dtypes`' name.
    pub(crate) name: String,
    /// DLPack's code.
    pub(crate) code: u8,
    pub(crate) bits: u8,
    /// Rust's constant.
    pub(crate) rust: String,
    /// C#'s name, where its custom does not give it.
    pub(crate) csharp: Option<String>,
    /// What the page says in brackets after the names of this code.
    pub(crate) note: Option<String>,
    pub(crate) doc: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    about: String,
    /// The table of the page that shows these facts.
    table: Option<String>,
    facts: Vec<Fact>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fact {
    name: String,
    #[serde(rename = "type")]
    ty: Type,
    is: Given,
    hex: Option<usize>,
    /// What a number counts, for the page.
    unit: Option<String>,
    rust_type: Option<String>,
    only: Option<Vec<String>>,
    doc: String,
    page: Option<String>,
}

/// A value as it is written in the file.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
enum Given {
    Number(u64),
    Text(String),
}

/// What kind of value a constant has.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Type {
    /// A length or an index in memory.
    Size,
    /// A number of things that are counted.
    Count,
    /// 16 bits of the format.
    U16,
    /// 32 bits of the format.
    U32,
    /// 64 bits of the format.
    U64,
    /// Eight bytes of a file.
    Bytes,
    /// A string.
    Text,
    /// A time.
    Time,
}

/// Fields of shared memory or of a message, by their offsets.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Layout {
    pub(crate) name: String,
    /// What the constants' names begin with.
    prefix: String,
    about: String,
    only: Option<Vec<String>>,
    /// The headings of the page's table; without them the page has none.
    #[serde(default)]
    pub(crate) columns: Vec<String>,
    /// Digits of an offset.
    #[serde(default = "one")]
    pub(crate) digits: usize,
    pub(crate) fields: Vec<Field>,
}

fn one() -> usize {
    1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Field {
    pub(crate) at: Option<u64>,
    /// In place of a number: an offset that depends on another field.
    pub(crate) place: Option<String>,
    #[serde(rename = "type")]
    pub(crate) ty: String,
    pub(crate) name: String,
    /// The constant's name, where it is not the field's; empty: there is none.
    constant: Option<String>,
    /// Who writes the word.
    pub(crate) writes: Option<String>,
    /// The page shows the name as words, not as code.
    #[serde(default)]
    pub(crate) plain: bool,
    pub(crate) page: String,
    doc: Option<String>,
}

/// Numbers with names.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct List {
    pub(crate) name: String,
    pub(crate) about: String,
    /// The names are shown in capital letters.
    #[serde(default)]
    upper: bool,
    pub(crate) items: Vec<Item>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Item {
    pub(crate) number: u32,
    pub(crate) name: String,
    pub(crate) doc: String,
}

impl List {
    /// As people read it.
    pub(crate) fn shown(&self, item: &Item) -> String {
        if self.upper { item.name.to_ascii_uppercase() } else { item.name.clone() }
    }
}

/// A constant as one language sees it.
pub struct Constant {
    /// `poll_interval`.
    pub name: String,
    /// What kind of value it has.
    pub ty: Type,
    /// The value.
    pub value: Value,
    /// Digits, where it is shown in hexadecimal.
    pub hex: Option<usize>,
    /// Rust's type, where it is not the usual one.
    pub rust_type: Option<String>,
    /// One or two sentences.
    pub doc: String,
}

/// A constant's value.
pub enum Value {
    /// Also the nanoseconds of a time.
    Number(u64),
    /// Also bytes.
    Text(String),
}

impl Constant {
    /// The value of a number or time.
    ///
    /// # Panics
    /// If it is a text.
    #[must_use]
    pub fn number(&self) -> u64 {
        match self.value {
            Value::Number(number) => number,
            Value::Text(_) => panic!("{} is a text", self.name),
        }
    }
}

/// Constants that belong together.
pub struct Group {
    /// A sentence.
    pub about: String,
    /// In their order.
    pub constants: Vec<Constant>,
}

impl Facts {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let facts: Self = toml::from_str(text).map_err(|e| e.to_string())?;
        facts.check()?;
        Ok(facts)
    }

    /// What one language has of the sections and layouts. "" has all.
    #[must_use]
    pub fn groups(&self, language: &str) -> Vec<Group> {
        let has = |only: &Option<Vec<String>>| {
            language.is_empty() || only.as_ref().is_none_or(|only| only.iter().any(|one| one == language))
        };
        let sections = self.section.iter().map(|section| Group {
            about: section.about.clone(),
            constants: section.facts.iter().filter(|f| has(&f.only)).map(|f| f.constant()).collect(),
        });
        let layouts = self.layout.iter().filter(|layout| has(&layout.only)).map(|layout| Group {
            about: layout.about.clone(),
            constants: layout.fields.iter().filter_map(|field| layout.constant(field)).collect(),
        });
        sections.chain(layouts).filter(|group| !group.constants.is_empty()).collect()
    }

    /// The constants of the sections that this table of the page shows, each with the cell that it has in place of the
    /// documentation, or with what it counts.
    pub(crate) fn table(&self, name: &str) -> Vec<(Constant, Option<&str>)> {
        let sections = self.section.iter().filter(|section| section.table.as_deref() == Some(name));
        sections
            .flat_map(|section| &section.facts)
            .map(|fact| (fact.constant(), fact.page.as_deref().or(fact.unit.as_deref())))
            .collect()
    }

    pub(crate) fn layouts(&self) -> impl Iterator<Item = &Layout> {
        self.layout.iter()
    }

    pub(crate) fn lists(&self) -> impl Iterator<Item = &List> {
        self.list.iter()
    }

    pub(crate) fn list(&self, name: &str) -> &List {
        self.list.iter().find(|list| list.name == name).expect("facts.toml has this list")
    }

    /// A constant's value, by its name.
    ///
    /// # Panics
    /// If there is none of this name, or it is a text.
    #[must_use]
    pub fn number(&self, name: &str) -> u64 {
        let mut all = self.groups("").into_iter().flat_map(|group| group.constants);
        all.find(|constant| constant.name == name).unwrap_or_else(|| panic!("no fact '{name}'")).number()
    }

    /// That the file agrees with itself: what is true in every version of the format.
    fn check(&self) -> Result<()> {
        for (i, error) in self.errors.iter().enumerate() {
            if error.number != i + 1 {
                return Err(format!("error {} is number {}, expected {}", error.name, error.number, i + 1));
            }
        }
        let mut names = HashSet::new();
        for constant in self.groups("").into_iter().flat_map(|group| group.constants) {
            if !names.insert(constant.name.clone()) {
                return Err(format!("'{}' is stated twice", constant.name));
            }
        }
        for fact in self.section.iter().flat_map(|section| &section.facts) {
            let unit = matches!(&fact.is, Given::Text(text) if fact.ty == Type::Time && time(text).is_none());
            let number = matches!(fact.is, Given::Number(_));
            let wants_text = matches!(fact.ty, Type::Bytes | Type::Text | Type::Time);
            if unit || number == wants_text {
                return Err(format!("'{}' has a value of another type than it says", fact.name));
            }
        }
        // A role line stands twice in a ring's table, word by word.
        let at = |layout: &str, field: &str| {
            let layout = self.layout.iter().find(|one| one.name == layout)?;
            layout.fields.iter().find(|one| one.name == field)?.at
        };
        for role in ["producer", "consumer"] {
            for word in ["wait", "flags", "epoch", "close_seen"] {
                let Some(here) = at("ring", &format!("{role}.{word}")) else { continue };
                if Some(here) != at("ring", &format!("{role}.wait")).zip(at("role", word)).map(|(a, b)| a + b) {
                    return Err(format!("{role}.{word} is not where a role's {word} is"));
                }
            }
        }
        Ok(())
    }

    /// Replaces `{kind}` by a list's numbers and names and `{magic}` by a constant's bytes.
    pub(crate) fn filled(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for list in &self.list {
            let items: Vec<_> = list.items.iter().map(|i| format!("{} {}", i.number, list.shown(i))).collect();
            text = text.replace(&format!("{{{}}}", list.name), &items.join(", "));
        }
        for constant in self.groups("").iter().flat_map(|group| &group.constants) {
            if let (Type::Bytes, Value::Text(bytes)) = (constant.ty, &constant.value) {
                let bytes: Vec<_> = bytes.bytes().map(|byte| format!("{byte:02X}")).collect();
                text = text.replace(&format!("{{{}}}", constant.name), &bytes.join(" "));
            }
        }
        text
    }
}

impl Fact {
    fn constant(&self) -> Constant {
        let value = match &self.is {
            Given::Number(number) => Value::Number(*number),
            Given::Text(text) if self.ty == Type::Time => Value::Number(time(text).unwrap_or_default()),
            Given::Text(text) => Value::Text(text.clone()),
        };
        let (name, ty, hex) = (self.name.clone(), self.ty, self.hex);
        Constant { name, ty, value, hex, rust_type: self.rust_type.clone(), doc: self.doc.clone() }
    }
}

impl Layout {
    /// The constant of a field; `None` if it has none.
    fn constant(&self, field: &Field) -> Option<Constant> {
        let name = field.constant.as_ref().unwrap_or(&field.name);
        let at = field.at.filter(|_| !name.is_empty())?;
        // Without a text of its own, the type and the beginning of the page's cell.
        let short = field.page.split(['{', ';']).next().unwrap_or_default().trim();
        let doc = match &field.doc {
            Some(doc) => doc.clone(),
            None if short.trim_matches('`').is_empty() => format!("{}.", field.ty),
            None => format!("{}: {short}.", field.ty),
        };
        let (ty, hex) = (Type::Size, Some(self.digits));
        Some(Constant {
            name: format!("{}_{name}", self.prefix),
            ty,
            value: Value::Number(at),
            hex,
            rust_type: None,
            doc,
        })
    }
}

/// The nanoseconds of "110 us".
fn time(text: &str) -> Option<u64> {
    let (number, unit) = text.split_once(' ')?;
    let factor = match unit {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return None,
    };
    Some(number.parse::<u64>().ok()? * factor)
}

/// With a capital letter and a full stop.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}
