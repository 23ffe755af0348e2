#!/bin/sh
# Borrows by every other way there is (http-alternates, a link as alternates, the environment of a hook): nothing comes in.
#: exit 8
#: says cannot be imported
echo "$FOREIGN/.git/objects" > .git/objects/info/http-alternates
rm .git/objects/info/alternates
ln -s "$FOREIGN/.git/objects/info/alternates" .git/objects/info/alternates
echo "$FCOMMIT" > .git/HEAD
