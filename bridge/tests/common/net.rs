//! Two networks that are joined by one cable: Linux's network namespaces and a pair of virtual interfaces. Where that may not be
//! made (not root, a container without the right), both machines are on this one's loopback, and the cable cannot be cut.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// The network of one machine.
#[derive(Clone, Debug)]
pub struct Net {
    namespace: Option<String>,
    /// What the machine is reached by.
    pub address: String,
}

/// Two machines' networks, and the cable between them.
pub struct Cable {
    pub near: Net,
    pub far: Net,
}

impl Net {
    /// Of this machine.
    pub fn here() -> Self {
        Self { namespace: None, address: "127.0.0.1".into() }
    }

    /// A command that runs in it.
    pub fn command(&self, program: &str) -> Command {
        match &self.namespace {
            None => Command::new(program),
            Some(namespace) => {
                // `ip` becomes the program, so that the child's number is the program's.
                let mut command = Command::new("ip");
                command.args(["netns", "exec", namespace, program]);
                command
            }
        }
    }
}

impl Cable {
    /// `None`, after having said why, where namespaces cannot be made.
    pub fn new() -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // Relaxed: only different numbers are asked for.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let namespace = |side: &str| format!("ramway-{}-{number}-{side}", std::process::id());
        let net = |side: &str, address: &str| Net { namespace: Some(namespace(side)), address: address.into() };
        let cable = Self { near: net("near", "10.77.0.1"), far: net("far", "10.77.0.2") };
        match cable.lay() {
            Ok(()) => Some(cable),
            Err(why) => {
                println!("skipped: two networks cannot be made here: {why}");
                None
            }
        }
    }

    fn lay(&self) -> Result<(), String> {
        let (near, far) = (self.near.name(), self.far.name());
        for namespace in [near, far] {
            ip(&["netns", "add", namespace])?;
        }
        ip(&["link", "add", "cable", "netns", near, "type", "veth", "peer", "name", "cable", "netns", far])?;
        for net in [&self.near, &self.far] {
            let namespace = net.name();
            ip(&["-n", namespace, "address", "add", &format!("{}/24", net.address), "dev", "cable"])?;
            ip(&["-n", namespace, "link", "set", "lo", "up"])?;
            ip(&["-n", namespace, "link", "set", "cable", "up"])?;
        }
        Ok(())
    }

    /// Takes the cable out.
    pub fn cut(&self) {
        ip(&["-n", self.near.name(), "link", "set", "cable", "down"]).expect("the interface goes down");
    }

    /// Puts it back.
    pub fn mend(&self) {
        ip(&["-n", self.near.name(), "link", "set", "cable", "up"]).expect("the interface comes up");
    }
}

impl Net {
    fn name(&self) -> &str {
        self.namespace.as_deref().expect("of a cable")
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        for net in [&self.near, &self.far] {
            let _ = ip(&["netns", "delete", net.name()]);
        }
    }
}

fn ip(arguments: &[&str]) -> Result<(), String> {
    let shown = || format!("ip {}", arguments.join(" "));
    let output = Command::new("ip")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{}: {error}", shown()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{}: {}", shown(), String::from_utf8_lossy(&output.stderr).trim()))
}
