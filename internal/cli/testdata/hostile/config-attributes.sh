#!/bin/sh
# Sets core.attributesFile and excludesFile to files of its own, so that work is hidden or rewritten: it comes as it is.
#: file more
evil .git/evil
echo '* filter=evil ident eol=crlf' > .git/attributes
echo '*' > .git/excludes
git config core.attributesFile /workspace/.git/attributes
git config core.excludesFile /workspace/.git/excludes
git config filter.evil.clean "$HERE/.git/evil"
git config core.autocrlf true
fix
echo more > more
#: file answer
