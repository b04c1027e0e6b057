//! What a far end tells the near one: how far it has come, and what it needs.

use super::{Import, No, Running};
use crate::link::How;
use crate::stream::Ack;
use crate::wire;

impl Running {
    pub(super) fn unknown(&self, stream: u64, attempt: u64) -> Ack {
        Ack {
            far: self.import.machine,
            stream,
            attempt,
            run: self.import.run,
            committed: 0,
            expected: Default::default(),
            again: false,
            unknown: true,
            far_end: None,
            end_seen: 0,
            window: 0,
        }
    }

    pub(super) fn ack(&mut self) -> Result<(), No> {
        (self.unanswered, self.answer_at) = (0, None);
        match (&self.far, self.near) {
            (Some(far), Some((near, _))) => {
                let ack = far.ack();
                self.say(near, &ack)
            }
            _ => Ok(()),
        }
    }

    pub(super) fn say(&mut self, near: u64, ack: &Ack) -> Result<(), No> {
        let failed = |e: crate::link::LinkError| No::Failed(e.to_string());
        if self.back.as_ref().is_none_or(|(of, _)| *of != near) {
            let Import { base, kind, name, .. } = &self.import;
            let verb = if self.import.of.is_some() { "to" } else { "back" };
            let key = wire::key(base, kind, name, &format!("{verb}/{near:016x}"));
            self.back = Some((near, self.import.link.outlet(key, How::Waiting).map_err(failed)?));
        }
        let (_, outlet) = self.back.as_ref().expect("made above");
        outlet.put(wire::encode_ack(ack)).map_err(failed)
    }
}
