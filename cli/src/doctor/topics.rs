//! Whether a topic's publisher is kept from going on.

use std::ffi::OsStr;

use ramway::survey;

use super::Item;
use crate::procs::Processes;
use crate::view::View;

/// The topics of the Ramway directory.
pub fn publishers() -> Item {
    const NAME: &str = "topics";
    let directory = survey::directory();
    let found = match survey::ls(&directory) {
        Ok(found) => found,
        Err(error) => {
            let fix = "ramway ls says more";
            return Item::worse(NAME, error.to_string(), "who blocks whose publisher is not known", fix);
        }
    };
    let processes = Processes::read();
    let views = found.iter().map(|found| View::new(OsStr::new(&found.name), &found.segment, &processes));
    let mut count = 0;
    let mut troubles = Vec::new();
    for view in views {
        if let Some(topic) = view.details.as_ref().and_then(|details| details.topic.as_ref()) {
            count += 1;
            troubles.extend(topic.troubles(&view.name));
        }
    }
    let (found, fixes): (Vec<String>, Vec<String>) = troubles.into_iter().unzip();
    if found.is_empty() {
        return Item::ok(
            NAME,
            format!("{count} in {}, none of which has to wait for a subscriber", directory.display()),
        );
    }
    let because =
        "a publisher waits for its reliable subscribers once the log is full; what is damaged cannot be opened";
    Item::worse(NAME, found.join("; "), because, fixes.join("; "))
}
