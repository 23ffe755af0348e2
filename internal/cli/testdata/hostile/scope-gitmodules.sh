#!/bin/sh
# Writes a .gitmodules whose update is a command and whose name leads out of the repository: refused at the import.
#: exit 8
#: says cannot be imported
printf '[submodule "../../x"]\n\tpath = x\n\turl = -u./evil\n\tupdate = !touch %s\n' "$MARK" > .gitmodules
fix
git add -A && git commit -q -m gitmodules
