#!/bin/sh
# The base has a submodule that is the foreign repository, with a command to update it: it is refused, and nothing of it is fetched or run.
#: exit 1
#: state none
#: says submodules
#: base printf '[submodule "x"]\n\tpath = x\n\turl = %s\n' "$FOREIGN" > .gitmodules
#: base git update-index --add --cacheinfo 160000,$FCOMMIT,x; git add .gitmodules
#: base git -c user.name=T -c user.email=t@localhost commit -q -m submodule; mkdir -p x
fix
git -c protocol.file.allow=always submodule update --init > /dev/null 2>&1
rmdir x 2> /dev/null
exit 0
