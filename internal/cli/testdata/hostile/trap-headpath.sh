#!/bin/sh
# Names a path out of the repository as what HEAD stands for: refused, and nothing is read there.
#: exit 8
#: says cannot be imported
deliver
echo "ref: refs/../../../../../..$FOREIGN/.git/refs/heads/main" > .git/HEAD
