#!/bin/sh
# Adds a link to the foreign commit without any .gitmodules: refused as a submodule.
#: exit 8
#: says submodule
fix
git add answer
git update-index --add --cacheinfo "160000,$FCOMMIT,x"
git commit -q -m gitlink
