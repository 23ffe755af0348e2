#!/bin/sh
# Commits a tree with one name twice, out of order, with modes that do not exist: refused by the check of each object.
#: exit 8
#: says cannot be imported
blob=$(echo fixed | git hash-object -w --stdin)
perl -e 'my $h = pack("H*", $ARGV[0]); print "100644 answer\0$h", "104755 answer\0$h", "100644 a\0$h"' "$blob" > .git/made
commit "$(object tree < .git/made)"
