#!/bin/sh
# Commits names that other systems read as .git (.GIT, git~1, .g<invisible>it): refused by the check of each object.
#: exit 8
#: says cannot be imported
blob=$(echo fixed | git hash-object -w --stdin)
perl -e 'my $h = pack("H*", $ARGV[0]); print "100644 .GIT\0$h", "100644 .g\xe2\x80\x8cit\0$h", "100644 answer\0$h", "100644 git~1\0$h"' \
	"$blob" > .git/made
commit "$(object tree < .git/made)"
