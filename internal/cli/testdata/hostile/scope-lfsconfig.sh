#!/bin/sh
# Writes a .lfsconfig that sends large files and credentials elsewhere: refused, it changes how git reads the repository.
#: exit 8
#: says out of scope
printf '[lfs]\n\turl = http://127.0.0.1:1/lfs\n' > .lfsconfig
fix
