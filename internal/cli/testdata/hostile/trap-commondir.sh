#!/bin/sh
# Names the foreign repository as common directory, with its commit as HEAD: nothing of it comes in.
#: exit 8
#: says cannot be imported
echo "$FOREIGN/.git" > .git/commondir
echo "$FCOMMIT" > .git/HEAD
