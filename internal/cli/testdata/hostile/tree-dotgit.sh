#!/bin/sh
# Commits a tree with an entry .git that holds a configuration: refused by the check of each object.
#: exit 8
#: says cannot be imported
evil .git/evil
inner=$(printf '100644 blob %s\tconfig\n' "$(echo '[core] fsmonitor = '"$HERE/.git/evil" | git hash-object -w --stdin)" | git mktree)
{ printf '100644 answer\0'; printf '%s' "$(echo fixed | git hash-object -w --stdin)" | xxd -r -p; } > .git/made 2> /dev/null ||
	perl -e 'print "100644 answer\0", pack("H*", $ARGV[0])' "$(echo fixed | git hash-object -w --stdin)" > .git/made
perl -e 'print "40000 .git\0", pack("H*", $ARGV[0]), "100644 answer\0", pack("H*", $ARGV[1])' \
	"$inner" "$(echo fixed | git hash-object -w --stdin)" > .git/made
commit "$(object tree < .git/made)"
