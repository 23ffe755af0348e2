#!/bin/sh
# Starts processes without end: ended at the limit, nothing is left of it.
#: args --max-tasks 200
#: exit 8
#: says --max-tasks
#: then
bomb() { bomb | bomb & }
bomb
while :; do sleep 1; done
