#!/bin/sh
# The base names filters, drivers and encodings for every file: none runs, and no file comes in that nobody has changed.
#: base printf '* filter=evil diff=evil merge=evil ident text=auto\n*.utf working-tree-encoding=UTF-16\n' > .gitattributes
#: base printf 'one\r\ntwo\r\n' > crlf; printf 'text' | iconv -t UTF-16 > x.utf; echo '$Id$' > id
#: base git add -A; git -c user.name=T -c user.email=t@localhost commit -q -m attributes
#: then
evil .git/evil
git config filter.evil.clean "$HERE/.git/evil"
git config filter.evil.smudge "$HERE/.git/evil"
fix
