#!/bin/sh
# Makes .git a symbolic link to the engine's own repository and the operator's: neither is read as a workspace.
#: exit 8
#: says cannot be imported
rm -rf .git
ln -s "$(dirname /interlock/objects)" .git
fix
