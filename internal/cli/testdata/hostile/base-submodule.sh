#!/bin/sh
# The base has a submodule that is the foreign repository, with a command to update it: nothing of it is fetched or run.
#: base printf '[submodule "x"]\n\tpath = x\n\turl = %s\n' "$FOREIGN" > .gitmodules
#: base git update-index --add --cacheinfo 160000,$FCOMMIT,x; git add .gitmodules
#: base git -c user.name=T -c user.email=t@localhost commit -q -m submodule; mkdir -p x
fix
git -c protocol.file.allow=always submodule update --init > /dev/null 2>&1
rmdir x 2> /dev/null
exit 0
