#!/bin/sh
# Makes .git a file that leads to the foreign repository: nothing of that comes in.
#: exit 8
#: says cannot be imported
#: then
rm -rf .git
echo "gitdir: $FOREIGN/.git" > .git
fix
