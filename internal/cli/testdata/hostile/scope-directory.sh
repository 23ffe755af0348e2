#!/bin/sh
# Makes .github a link to a directory of its own that holds the workflow: refused, a link in the place of a protected directory.
#: exit 8
#: says out of scope
mkdir -p elsewhere/workflows
echo 'on: push' > elsewhere/workflows/x.yml
ln -s elsewhere .github
fix
