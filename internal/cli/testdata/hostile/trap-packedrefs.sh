#!/bin/sh
# Makes packed-refs a link to the secret, whose text git would print as a bad line: refused, it is nowhere printed.
#: exit 8
#: says leads out of the workspace
deliver
rm -f .git/packed-refs
ln -s "$FOREIGN/secret" .git/packed-refs
