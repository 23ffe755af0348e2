#!/bin/sh
# Leaves a directory and files that nobody may read, work in them uncommitted: nothing is left out in silence.
#: exit 8
#: says cannot be taken in
fix
mkdir closed
echo work > closed/work
chmod 000 closed
