#!/bin/sh
# Commits links to the secret, the state directory and /etc: they lead nowhere in a check, and come as the links they are.
#: check test ! -e link-secret && test ! -e link-state && ! cat link-secret link-state/state.db link-shadow
#: file answer
#: file link-out
#: file link-secret
#: file link-shadow
#: file link-state
ln -s "$FOREIGN/secret" link-secret
ln -s "$STATE" link-state
ln -s /etc/shadow link-shadow
ln -s ../../../../.. link-out
fix
git add -A && git commit -q -m links
