#!/bin/sh
# Includes configuration from the foreign repository, its secret and the state: nothing of them is obeyed or printed.
deliver
git config include.path "$FOREIGN/.git/config"
printf '[include]\n\tpath = %s\n\tpath = %s\n' "$FOREIGN/secret" "$STATE/state.db" >> .git/config
