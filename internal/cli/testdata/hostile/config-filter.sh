#!/bin/sh
# Sets clean, smudge and process filters for every file, work left uncommitted: they never run, files come as they are.
evil .git/evil
for how in clean smudge process; do git config "filter.evil.$how" "$HERE/.git/evil"; done
git config filter.evil.required true
mkdir -p .git/info && echo '* filter=evil' > .git/info/attributes
fix
