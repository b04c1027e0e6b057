//! Patterns of names: `*` is any run of characters, `?` is one, all else is itself.

/// One pattern.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Glob(String);

impl Glob {
    /// Takes it as it is written.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self(pattern.into())
    }

    /// As it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is a name of its own.
    #[must_use]
    pub fn is_literal(&self) -> bool {
        !self.0.contains(['*', '?'])
    }

    /// Whether it is a pattern of this name.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        // A name as a pattern has no wildcard: `*` and `?` in it are taken for what they are.
        let name: Vec<Part> = name.chars().map(Part::One).collect();
        meet(&self.parts(), &name)
    }

    /// Whether there may be a name that both are patterns of.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        meet(&self.parts(), &other.parts())
    }

    fn parts(&self) -> Vec<Part> {
        let part = |c| match c {
            '*' => Part::Any,
            '?' => Part::Some,
            c => Part::One(c),
        };
        self.0.chars().map(part).collect()
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Part {
    One(char),
    Some,
    Any,
}

/// Whether a text exists that both match. Row by row over pairs of places: `met[j]` says whether the first `i` parts of `a` and the
/// first `j` of `b` can match the same text. Quadratic in the lengths, whatever the patterns are.
fn meet(a: &[Part], b: &[Part]) -> bool {
    let mut met = vec![false; b.len() + 1];
    met[0] = true;
    for j in 1..=b.len() {
        met[j] = met[j - 1] && b[j - 1] == Part::Any;
    }
    for &left in a {
        let mut next = vec![false; b.len() + 1];
        next[0] = met[0] && left == Part::Any;
        for j in 1..=b.len() {
            let right = b[j - 1];
            next[j] = match (left, right) {
                // One of the two wildcards matches nothing here, or swallows what the other one has.
                (Part::Any, _) | (_, Part::Any) => met[j] || next[j - 1] || met[j - 1],
                (Part::Some, _) | (_, Part::Some) => met[j - 1],
                (Part::One(x), Part::One(y)) => met[j - 1] && x == y,
            };
        }
        met = next;
    }
    met[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        let matches = |pattern: &str, name: &str| Glob::new(pattern).matches(name);
        assert!(matches("camera", "camera"));
        assert!(!matches("camera", "camera2"));
        assert!(matches("camera.*", "camera.front"));
        assert!(!matches("camera.*", "camera"));
        assert!(matches("*", "anything"));
        assert!(matches("*.?", "a.b"));
        assert!(!matches("*.?", "a.bc"));
        assert!(matches("*a*b*c", "xxaxxbxxc"));
        assert!(!matches("a*b", "axc"));
        assert!(!matches("a?c", "ac"));
        // Not a wildcard in a name.
        assert!(!matches("ab", "a*"));
        assert!(matches("a?", "a*"));
    }

    #[test]
    fn overlaps_are_found() {
        let overlap = |a: &str, b: &str| {
            let found = Glob::new(a).overlaps(&Glob::new(b));
            assert_eq!(found, Glob::new(b).overlaps(&Glob::new(a)), "{a} {b}");
            found
        };
        assert!(overlap("a*", "*b"));
        assert!(overlap("*", "?"));
        assert!(overlap("a*c", "ab*"));
        assert!(!overlap("a*", "b*"));
        assert!(!overlap("a?", "a"));
        assert!(!overlap("a*x", "a*y"));
        assert!(overlap("camera.?", "camera.*"));
    }

    /// Against the plainest matcher there is, over every pattern and name of a small alphabet.
    #[test]
    fn agrees_with_a_plain_matcher() {
        fn plain(pattern: &[u8], name: &[u8]) -> bool {
            match (pattern.first(), name.first()) {
                (None, None) => true,
                (Some(b'*'), _) => plain(&pattern[1..], name) || !name.is_empty() && plain(pattern, &name[1..]),
                (Some(b'?'), Some(_)) => plain(&pattern[1..], &name[1..]),
                (Some(x), Some(y)) => x == y && plain(&pattern[1..], &name[1..]),
                _ => false,
            }
        }
        fn all(alphabet: &[u8], longest: usize) -> Vec<Vec<u8>> {
            let mut words = vec![vec![]];
            let mut last = words.clone();
            for _ in 0..longest {
                last = last.iter().flat_map(|word| alphabet.iter().map(move |c| [word, &[*c][..]].concat())).collect();
                words.extend(last.iter().cloned());
            }
            words
        }
        let names = all(b"ab", 4);
        let patterns = all(b"ab*?", 3);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        for pattern in &patterns {
            for name in &names {
                let found = Glob::new(text(pattern)).matches(&text(name));
                assert_eq!(found, plain(pattern, name), "{} {}", text(pattern), text(name));
            }
        }
        // Two patterns of up to three parts that meet do so in a name of at most five characters.
        let names = all(b"ab", 5);
        for a in &patterns {
            for b in &patterns {
                let found = Glob::new(text(a)).overlaps(&Glob::new(text(b)));
                let known = names.iter().any(|name| plain(a, name) && plain(b, name));
                assert_eq!(found, known, "{} {}", text(a), text(b));
            }
        }
    }
}
