//! Which rows `--only` means.

use crate::plan::{Plan, groups};

/// Which rows are wanted.
pub(crate) struct Only<'a> {
    /// Each with whether it is a whole name, which means itself and not others that contain it.
    texts: Vec<(&'a str, bool)>,
}

impl<'a> Only<'a> {
    pub(crate) fn new(texts: &'a [String]) -> Self {
        let groups = groups(Plan::Full);
        let is_group = |text: &str| groups.iter().any(|known| known.group.id == text);
        let candidates = groups.iter().flat_map(|known| &known.candidates);
        let is_mechanism = |text: &str| candidates.clone().any(|candidate| candidate.mechanism == text);
        let whole = |text: &str| match text.split_once('/') {
            Some((group, mechanism)) => is_group(group) && is_mechanism(mechanism),
            None => is_group(text) || is_mechanism(text),
        };
        Self { texts: texts.iter().map(|text| (text.as_str(), whole(text))).collect() }
    }

    /// Whether one of them means this row.
    pub(crate) fn means(&self, group: &str, mechanism: &str) -> bool {
        let id = format!("{group}/{mechanism}");
        self.texts.iter().any(|&(text, whole)| match whole {
            true => [group, mechanism, &id].contains(&text),
            false => id.contains(text),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_name_means_itself() {
        let means = |text: &str, group, mechanism| Only::new(&[text.to_owned()]).means(group, mechanism);
        assert!(means("ring", "rtt-spin", "ring") && !means("ring", "rtt-spin", "ring-copy"));
        assert!(means("rtt-spin/bus", "rtt-spin", "bus") && !means("rtt-spin/bus", "rtt-spin", "bus-c"));
        assert!(means("wake", "wake", "uds") && !means("wake", "rtt-block", "uds"));
        assert!(means("one-way-32", "one-way-32-batch", "bus") && means("rin", "rtt-spin", "hand-ring"));
        assert!(!means("rtt-spin/ring", "rtt-block", "ring") && !means("one-way-32", "wake", "bus"));
    }
}
