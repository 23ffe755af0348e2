#!/bin/sh
# Brings a first check that plants what makes the second pass: each check has a tree, a home and caches of its own.
#: exit 8
#: says the checks failed
#: check sh first.sh
#: check cat planted "$HOME/planted" "$TMPDIR/planted" .git/planted
printf '%s\n' 'for f in planted "$HOME/planted" "$TMPDIR/planted" .git/planted; do echo planted > "$f"; done' > first.sh
fix
