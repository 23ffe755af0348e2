#!/bin/sh
# Stops itself and everything of its own: ended when it idles, nothing is left of it.
#: args --idle-timeout 2s
#: exit 8
#: says without output
deliver
kill -STOP -1
kill -STOP $$
