#!/bin/sh
# share.sh PROGRAM FOLDER: the manual pages and the completions of the `ramway` command, where a system looks for them below its
# share/. PROGRAM is any build of the command that runs here: both are made from its command line.
set -eu
program=$1 share=$2
install -d "$share/man/man1" "$share/bash-completion/completions" "$share/zsh/site-functions" "$share/fish/vendor_completions.d"
"$program" man "$share/man/man1"
"$program" completions bash >"$share/bash-completion/completions/ramway"
"$program" completions zsh >"$share/zsh/site-functions/_ramway"
"$program" completions fish >"$share/fish/vendor_completions.d/ramway.fish"
