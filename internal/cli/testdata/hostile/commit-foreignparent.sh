#!/bin/sh
# Makes the foreign commit a second parent of its own: it is not there, so the work is refused.
#: exit 8
#: says cannot be imported
fix
git add answer
printf 'tree %s\nparent %s\nparent %s\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\n\nx\n' \
	"$(git write-tree)" "$BASE" "$FCOMMIT" > .git/made
git hash-object -t commit -w --literally .git/made > .git/hash
cp .git/hash .git/refs/heads/interlock/issue-1
