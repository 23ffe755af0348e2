#!/bin/sh
# Leaves a file that nobody may read, uncommitted: nothing is left out in silence.
#: exit 8
#: says cannot be taken in
fix
echo work > closed
chmod 000 closed
