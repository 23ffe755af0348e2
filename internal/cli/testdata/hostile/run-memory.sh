#!/bin/sh
# Takes memory without end: ended at the limit, nothing is left of it.
#: args --max-memory 128MiB
#: exit 8
#: says --max-memory
perl -e 'my @a; push @a, "x" x 1048576 for 1 .. 100000'
