#!/bin/sh
# Fills packed-refs with terminal codes, which git prints as a bad line: refused, and shown escaped.
#: exit 8
#: says cannot be imported
deliver
printf '\033[2J\033]0;owned\007 bad\n' > .git/packed-refs
