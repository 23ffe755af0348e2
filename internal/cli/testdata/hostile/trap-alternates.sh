#!/bin/sh
# Borrows the foreign repository's objects and commits its secret by its hash: nothing of it comes in.
#: exit 8
#: says cannot be imported
#: then
echo "$FOREIGN/.git/objects" >> .git/objects/info/alternates
git update-index --add --cacheinfo "100644,$FBLOB,answer"
commit "$(git write-tree --missing-ok)"
