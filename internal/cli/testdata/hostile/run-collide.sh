#!/bin/sh
# Plants an object under the name of another, so that the same hash stands for other content: refused.
#: exit 8
#: says cannot be imported
deliver
good=$(git rev-parse HEAD:answer)
evilblob=$(echo evil | git hash-object -w --stdin)
file=.git/objects/$(echo "$good" | sed 's|^..|&/|')
chmod 644 "$file"
cp ".git/objects/$(echo "$evilblob" | sed 's|^..|&/|')" "$file"
