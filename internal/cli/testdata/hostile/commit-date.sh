#!/bin/sh
# Writes a commit whose dates no calendar has: refused by the check of each object.
#: exit 8
#: says cannot be imported
fix
git add answer
printf 'tree %s\nparent %s\nauthor a <a@b> 99999999999999999999 +9999\ncommitter a <a@b> -1 +0000\n\nx\n' "$(git write-tree)" "$BASE" |
	object commit > .git/hash
cp .git/hash .git/refs/heads/interlock/issue-1
