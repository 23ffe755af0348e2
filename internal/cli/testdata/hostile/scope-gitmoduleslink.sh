#!/bin/sh
# Leaves .gitmodules and .gitattributes as links to files elsewhere: refused, nothing is read through them.
#: exit 8
#: says attempt 1
fix
ln -s "$FOREIGN/secret" .gitmodules
ln -s "$FOREIGN/secret" .gitattributes
