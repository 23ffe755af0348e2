#!/bin/sh
# Writes a .gitattributes that names a filter for every file, which is set too: refused, and it never runs.
#: exit 8
#: says out of scope
evil .git/evil
git config filter.evil.clean "$HERE/.git/evil"
git config filter.evil.smudge "$HERE/.git/evil"
mkdir sub
echo '* filter=evil' > sub/.gitattributes
fix
