#!/bin/sh
# Commits a tree whose entries are "..", "." and a path out of it: refused by the check of each object.
#: exit 8
#: says cannot be imported
blob=$(echo fixed | git hash-object -w --stdin)
tree=$(printf '100644 blob %s\tescaped\n' "$blob" | git mktree)
perl -e 'my ($b, $t) = map { pack("H*", $_) } @ARGV; print "40000 .\0$t", "40000 ..\0$t", "100644 ../../marks/x\0$b", "100644 answer\0$b"' \
	"$blob" "$tree" > .git/made
commit "$(object tree < .git/made)"
