#!/bin/sh
# Brings a test that never ends and ignores every signal: ended at its time, the checks failed.
#: args --check-timeout 2s
#: check sh test.sh
#: exit 8
#: says time limit
printf '%s\n' "trap '' HUP INT TERM" 'setsid sleep 4321 &' 'while :; do sleep 1; done' > test.sh
fix
