#!/bin/sh
# The base has links out of the tree in the place of directories: a checkout writes nothing through them.
#: base ln -s "$(dirname "$MARK")" out; ln -s "$STATE" state; ln -s "$FOREIGN/secret" link; ln -s / root; ln -s ../../.. up
#: check ! cat link state/state.db up/foreign/secret && test ! -e out
#: then
deliver
echo evil > out/evil
cat link up/foreign/secret
exit 0
