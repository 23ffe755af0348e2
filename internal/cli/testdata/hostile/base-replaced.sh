#!/bin/sh
# The repository replaces its base commit by another and grafts its history: the real commit is worked.
#: base evilcommit=$(echo evil | git -c user.name=T -c user.email=t@localhost commit-tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904)
#: base git replace HEAD~0 $evilcommit 2> /dev/null || git hash-object -t tree -w /dev/null > /dev/null
deliver
