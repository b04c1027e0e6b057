//! The command line.

mod run;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};
use ramway_cli::color::Color;
use ramway_cli::failure::{Failure, Outcome, USAGE};
use ramway_cli::units::parse_duration;

use crate::check;
use crate::config::raw::{self, Maybe, Quantity, Spanned, bare};
use crate::config::{Config, Problems};

const ABOUT: &str = "Carries rings, topics, buses and RPC to the next machine, over Zenoh.";

const NOTES: &str = "\
A bridge runs on each machine. One exports: what is sent on its machine leaves
it. The other imports: the same name appears on its machine, and is used there
like any other. What no rule names stays where it is.

SIGHUP reads the file again: rules that did not change go on undisturbed, and a
file that is wrong is reported and changes nothing. SIGTERM and Ctrl-C end the
bridge once what is under way has arrived, or --drain has passed.

A bridge that ends, and one that is killed, loses nothing of rings and reliable
topics: the next one goes on where it stopped. Connections (bus, rpc) end with
either bridge, and both sides are told.

Exit codes: 0 ended by a signal; 2 the command line or the file is wrong; 7 an
address is taken; `ramway --help` has the rest.

Environment:
  RAMWAY_DIR         where named segments live (default: /dev/shm/ramway-UID)
  NO_COLOR           no colours, as --color never

Examples:
  ramway-bridge --config bridge.toml --check
  ramway-bridge --config bridge.toml --metrics 127.0.0.1:9464
  ramway-bridge import camera --kind ring --on-disconnect block \\
      --listen tls/[::]:7447 --ca ca.pem --certificate far.pem --key far.key
  ramway-bridge export camera --kind ring --on-disconnect block \\
      --connect tls/far:7447 --ca ca.pem --certificate near.pem --key near.key
  ramway-bridge export store --kind rpc --eject-after 5s --connect tcp/far:7447";

/// What `ramway-bridge` was asked to do.
#[derive(Parser)]
#[command(name = "ramway-bridge", version, about = ABOUT, after_help = NOTES, max_term_width = 110, arg_required_else_help = true)]
pub struct Cli {
    /// The file with the link and the rules
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Say what would be bridged now, and why the rest would not; bridge nothing
    #[arg(long, global = true)]
    check: bool,
    /// Say what is done, and how each stream stands
    #[arg(long, short, global = true, conflicts_with = "check")]
    verbose: bool,
    /// Serve metrics for Prometheus at http://ADDR:PORT/metrics; goes before the file's [metrics]
    #[arg(long, global = true, value_name = "ADDR:PORT", conflicts_with = "check")]
    metrics: Option<SocketAddr>,
    /// How long a bridge that is asked to end waits until what is under way has arrived; 500ms, 10s
    #[arg(long, global = true, value_name = "TIME", value_parser = parse_duration, default_value = "5s", conflicts_with = "check")]
    drain: Duration,
    /// When to colour the output (auto: on a terminal, unless NO_COLOR or TERM say otherwise)
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
    #[command(subcommand)]
    command: Option<Command>,
}

/// Without a file.
#[derive(Subcommand)]
enum Command {
    /// Bridge these names from this machine
    Export(Flags),
    /// Bridge these names to this machine
    Import(Flags),
}

/// One rule and the link. What they mean, and which go together, is said where a file is read.
#[derive(clap::Args)]
struct Flags {
    /// Names of segments; * is any run of characters, ? is one
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Not these names
    #[arg(long, value_name = "NAME")]
    except: Vec<String>,
    /// What they are: ring, topic, newest (of a topic only the newest message), bus or rpc (a listener)
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// Of a topic: reliable or lossy
    #[arg(long, value_name = "HOW")]
    delivery: Option<String>,
    /// What a broken link does, of reliable rules: block (wait until it is back)
    #[arg(long, value_name = "WHAT")]
    on_disconnect: Option<String>,
    /// Instead: after this time the local side is let go; 500ms, 5s
    #[arg(long, value_name = "TIME")]
    eject_after: Option<String>,
    /// At most N messages a second, of a lossy topic
    #[arg(long, value_name = "N")]
    rate: Option<String>,
    /// At most one message in this time, of kind newest
    #[arg(long, value_name = "TIME")]
    every: Option<String>,
    /// A part of the key between --link-prefix and the name
    #[arg(long, value_name = "KEY")]
    prefix: Option<String>,
    /// Bytes that may be under way; 64K, 8M
    #[arg(long, value_name = "SIZE")]
    window: Option<String>,
    /// Bytes of the pieces that a long message is sent in
    #[arg(long, value_name = "SIZE")]
    chunk: Option<String>,
    /// Of what an import makes [default: as on the other machine]
    #[arg(long, value_name = "SIZE")]
    capacity: Option<String>,
    /// Of the durable subscriber of a reliable topic
    #[arg(long, value_name = "LABEL")]
    label: Option<String>,
    /// Of a bus or rpc: how many connections there may be at a time, of each name [default: 64]
    #[arg(long, value_name = "N")]
    max_connections: Option<String>,
    /// peer or client
    #[arg(long, value_name = "MODE", help_heading = "Link")]
    mode: Option<String>,
    /// Where the other bridge connects to: tls/[::]:7447, quic/..., tcp/..., unixsock-stream/PATH
    #[arg(long, value_name = "ENDPOINT", help_heading = "Link")]
    listen: Vec<String>,
    /// Where the other bridge listens
    #[arg(long, value_name = "ENDPOINT", help_heading = "Link")]
    connect: Vec<String>,
    /// Look for other peers by multicast
    #[arg(long, help_heading = "Link")]
    discovery: bool,
    /// What every key begins with [default: ramway]
    #[arg(long, value_name = "KEY", help_heading = "Link")]
    link_prefix: Option<String>,
    /// All of the session's settings, in Zenoh's own format
    #[arg(long, value_name = "FILE", help_heading = "Link")]
    zenoh: Option<String>,
    /// Who signed the other side's certificate, PEM
    #[arg(long, value_name = "FILE", help_heading = "Link")]
    ca: Option<String>,
    /// This side's certificate, PEM
    #[arg(long, value_name = "FILE", help_heading = "Link")]
    certificate: Option<String>,
    /// Its private key, PEM
    #[arg(long, value_name = "FILE", help_heading = "Link")]
    key: Option<String>,
    /// Whether the connecting side must show a certificate too [default: true]
    #[arg(long, value_name = "BOOL", help_heading = "Link")]
    mutual: Option<bool>,
}

/// Does it.
///
/// # Errors
/// Exit code and text.
pub fn run(cli: Cli) -> Outcome {
    let source = Source::of(&cli)?;
    let config = source.read().map_err(|problems| Failure::new(USAGE, problems.to_string()))?;
    if cli.check {
        return check::run(&config);
    }
    let metrics = cli.metrics.or(config.metrics);
    run::run(config, &source, &run::Options { metrics, verbose: cli.verbose, drain: cli.drain })
}

/// Where the configuration comes from, to read it again.
enum Source {
    File(PathBuf),
    Flags(Box<Config>),
}

impl Source {
    fn of(cli: &Cli) -> Outcome<Self> {
        let (direction, flags) = match (&cli.config, &cli.command) {
            (Some(file), None) => return Ok(Self::File(file.clone())),
            (None, Some(Command::Export(flags))) => ("export", flags),
            (None, Some(Command::Import(flags))) => ("import", flags),
            (Some(_), Some(_)) => {
                let text = "--config and export or import are both given; the file has rules of its own, so remove one of the two";
                return Err(Failure::new(USAGE, text));
            }
            (None, None) => {
                return Err(Failure::new(
                    USAGE,
                    "nothing says what to bridge; give --config FILE, or export or import",
                ));
            }
        };
        match Config::flags(flags.raw(direction)) {
            Ok(config) => Ok(Self::Flags(Box::new(config))),
            Err(problems) => Err(Failure::new(USAGE, problems.to_string())),
        }
    }

    fn read(&self) -> Result<Config, Problems> {
        match self {
            Self::File(path) => Config::read(path),
            Self::Flags(config) => Ok((**config).clone()),
        }
    }
}

impl Flags {
    /// As if it had stood in a file.
    fn raw(&self, direction: &str) -> raw::File {
        let text = |value: &Option<String>| value.clone().map(bare);
        let quantity = |value: &Option<String>| value.clone().map(|text| bare(Quantity(text)));
        let list = |values: &[String]| -> Maybe<Vec<Spanned<String>>> {
            (!values.is_empty()).then(|| bare(values.iter().cloned().map(bare).collect()))
        };
        let tls = raw::Tls {
            ca: text(&self.ca),
            certificate: text(&self.certificate),
            key: text(&self.key),
            mutual: self.mutual.map(bare),
        };
        let has_tls = tls.ca.is_some() || tls.certificate.is_some() || tls.key.is_some() || tls.mutual.is_some();
        let link = raw::Link {
            prefix: text(&self.link_prefix),
            zenoh: text(&self.zenoh),
            mode: text(&self.mode),
            listen: list(&self.listen),
            connect: list(&self.connect),
            discovery: self.discovery.then(|| bare(true)),
            tls: has_tls.then(|| bare(tls)),
        };
        let rule = raw::Rule {
            names: list(&self.names),
            except: list(&self.except),
            kind: text(&self.kind),
            direction: Some(bare(direction.to_owned())),
            delivery: text(&self.delivery),
            on_disconnect: text(&self.on_disconnect),
            eject_after: quantity(&self.eject_after),
            rate: quantity(&self.rate),
            every: quantity(&self.every),
            prefix: text(&self.prefix),
            window: quantity(&self.window),
            chunk: quantity(&self.chunk),
            capacity: quantity(&self.capacity),
            label: text(&self.label),
            max_connections: quantity(&self.max_connections),
        };
        raw::File { link: Some(bare(link)), metrics: None, rule: vec![bare(rule)] }
    }
}
