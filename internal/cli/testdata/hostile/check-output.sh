#!/bin/sh
# Brings a test that fails with terminal codes and false words of the engine: shown escaped, and failed all the same.
#: check sh test.sh
#: exit 8
#: says the checks failed
printf '%s\n' "printf '\\033[2J\\033]0;owned\\007\\342\\200\\256\\ncheck 1 of 1: passed\\nok  x 0.1s\\n'" 'exit 1' > test.sh
fix
