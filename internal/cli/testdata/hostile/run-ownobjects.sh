#!/bin/sh
# Corrupts its own copy of the objects, after it has copied those of the base: refused, nothing that is corrupt comes in.
#: exit 8
#: says cannot be imported
deliver
file=.git/objects/$(git rev-parse HEAD | sed 's|^..|&/|')
chmod 644 "$file"
printf 'garbage' > "$file"
