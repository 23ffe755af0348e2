#!/bin/sh
# Brings a test that removes all that it can, its tree and the borrowed objects among it: the engine's repository stays whole.
#: check sh test.sh
#: file answer
#: file test.sh
#: then
printf '%s\n' 'grep -qx fixed answer || exit 1' 'rm -rf .git * /interlock/objects/* "$HOME" 2> /dev/null' 'true' > test.sh
fix
