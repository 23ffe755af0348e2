#!/bin/sh
# Writes a commit message of 5 MiB: taken in or refused, in time, with the reason.
#: exit 8
#: says cannot be imported
fix
git add answer
yes 'a line of a message' | head -c 5242880 | git commit -q -F -
