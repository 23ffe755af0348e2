#!/bin/sh
# Adds a submodule that is the foreign repository: refused, nothing of it is fetched.
#: exit 8
#: says out of scope
#: then
printf '[submodule "x"]\n\tpath = x\n\turl = %s\n' "$FOREIGN" > .gitmodules
fix
git add .gitmodules answer
git update-index --add --cacheinfo "160000,$FCOMMIT,x"
git commit -q -m submodule
