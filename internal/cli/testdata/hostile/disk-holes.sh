#!/bin/sh
# Leaves a file of 1 TiB that is a hole: refused in time, with the reason.
#: exit 8
#: says has more than
fix
truncate -s 1T hole
