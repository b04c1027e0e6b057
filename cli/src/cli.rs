//! The command line: what `clap` reads.

use clap::{Parser, Subcommand};

use ramway_cli::color::Color;

use crate::{
    bench, call, clean, completions, demo, doctor, inspect, ls, man, publish, recv, send, serve, subscribe, unlink,
};

const ABOUT: &str = "Moves data between the processes of one machine through shared memory.";

const EXIT_CODES: &str = "\
Exit codes:
    0  done
    1  an error that none of the codes below names; also standard input or
       output that is closed, before anything is taken, sent or removed
    2  the command line is wrong
    3  timed out
    4  the process on the other side died without closing
    5  the other side closed before everything was sent
    6  nothing has this name
    7  the name or the role is taken
    8  not enough memory or space
    9  not a Ramway segment, of another version, or corrupt
   10  the server ended the call with an error (`ramway call`)
  130  interrupted by Ctrl-C (143: by SIGTERM)

Environment:
  RAMWAY_DIR         where named segments live (default: /dev/shm/ramway-UID)
  RAMWAY_MEMBARRIER  0 switches membarrier off
  NO_COLOR           no colours, as --color never

Examples:
  ramway send films movie.mkv             before or after, elsewhere:
  ramway recv films copy.mkv
  tail -f log | ramway send --lines log   each line one message
  tail -f log | ramway pub --lines news   the same for any number of receivers:
  ramway sub news --format lines
  ramway call store Store.Get --data key  one call of an RPC server's method
  ramway ls                               segments, listeners, buses; who is attached
  ramway doctor                           what this machine can do";

/// What `ramway` was asked to do.
#[derive(Parser)]
#[command(name = "ramway", version, about = ABOUT, after_help = EXIT_CODES, max_term_width = 110, propagate_version = true)]
#[command(subcommand_required = true, arg_required_else_help = true, infer_subcommands = true)]
pub struct Cli {
    /// When to colour the output (auto: on a terminal, unless NO_COLOR or TERM say otherwise)
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: Color,

    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Subcommand)]
pub enum Command {
    /// Send a file or standard input through a named ring
    Send(send::Args),
    /// Receive what is sent through a named ring
    Recv(recv::Args),
    /// Publish files or standard input to a named topic, for any number of subscribers
    Pub(publish::Args),
    /// Receive what is published to a named topic
    Sub(subscribe::Args),
    /// Call a method of an RPC server
    Call(call::Args),
    /// Serve RPC calls by a command, for trials
    Serve(serve::Args),
    /// List segments, listeners and live buses, and who is attached
    Ls(ls::Args),
    /// Show a segment's header, decoded
    Inspect(inspect::Args),
    /// Remove what dead processes left
    Clean(clean::Args),
    /// Remove segments by name, whatever they still hold, unless somebody uses them
    Unlink(unlink::Args),
    /// Measure latency and throughput on this machine, by the program `ramway-bench`
    #[command(disable_help_flag = true)]
    Bench(bench::Args),
    /// Stream a real file between two processes, compare the digests, and measure
    Demo(demo::Args),
    /// Say what this machine can do for Ramway, what it cannot, and how to mend that
    Doctor(doctor::Args),
    /// Print a completion script for a shell
    Completions(completions::Args),
    /// Write the manual pages into a folder, for packages
    Man(man::Args),
}
