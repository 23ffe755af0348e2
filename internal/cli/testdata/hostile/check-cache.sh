#!/bin/sh
# Plants what makes the checks pass in every place that an agent can write: a check sees none of them.
#: exit 8
#: says the checks failed
#: check cat "$HOME/planted" "$TMPDIR/planted" "$HOME/.cache/planted" .git/planted
fix
mkdir -p "$HOME/.cache"
for file in "$HOME/planted" "$TMPDIR/planted" "$HOME/.cache/planted" .git/planted; do echo planted > "$file"; done
