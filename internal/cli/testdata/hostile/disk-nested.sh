#!/bin/sh
# Leaves repositories of its own in the tree, with monitors and gitfiles that lead elsewhere: what is theirs stays out, nothing runs.
#: file answer
#: file file/x
fix
git init -q nested
evil nested/.git/evil
git -C nested config core.fsmonitor "$HERE/nested/.git/evil"
echo inside > nested/file
git -C nested -c core.fsmonitor= add file && git -C nested -c core.fsmonitor= commit -q -m nested
mkdir file && echo "gitdir: $FOREIGN/.git" > file/.git && echo x > file/x
