#!/bin/sh
# Makes HEAD a link to the foreign repository's, and its branch one as well: nothing of that comes in.
#: exit 8
#: says cannot be imported
deliver
rm .git/HEAD
ln -s "$FOREIGN/.git/HEAD" .git/HEAD
mkdir -p .git/refs/heads
ln -s "$FOREIGN/.git/refs/heads/main" .git/refs/heads/main
