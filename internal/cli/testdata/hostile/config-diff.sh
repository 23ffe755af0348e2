#!/bin/sh
# Sets diff.external, textconv and a merge driver: they never run, the change is shown as it is.
deliver
evil .git/evil
git config diff.external "$HERE/.git/evil"
git config diff.evil.textconv "$HERE/.git/evil"
git config diff.evil.command "$HERE/.git/evil"
git config merge.evil.driver "$HERE/.git/evil"
mkdir -p .git/info && echo '* diff=evil merge=evil' > .git/info/attributes
