#!/bin/sh
# Kills every process that it can see, its parents first: nothing but its own ends.
#: exit 8
#: says the agent ended
#: then
deliver
kill -9 "$PPID" 1 2> /dev/null
kill -9 -1
