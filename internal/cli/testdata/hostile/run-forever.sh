#!/bin/sh
# Ignores every signal and never ends: ended at its time, nothing is left of it.
#: args --agent-timeout 2s
#: exit 8
#: says ended after 2s
deliver
trap '' HUP INT QUIT TERM USR1 USR2 PIPE ALRM
(trap '' TERM; setsid sleep 12345) &
while :; do sleep 1; done
