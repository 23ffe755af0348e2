#!/bin/sh
# Reads all that is not its own (the foreign repository, the state, keys, environments) and prints it: there is nothing to print.
deliver
cat "$FOREIGN/secret" "$STATE/state.db" "$REPO/.git/config" /etc/shadow /root/.ssh/* /proc/*/environ /proc/*/root"$FOREIGN/secret" \
	/proc/*/cwd/secret /proc/1/fd/* 2> /dev/null
find / -name secret -exec cat {} + 2> /dev/null
git -C "$FOREIGN" log -p 2> /dev/null
git --git-dir "$FOREIGN/.git" cat-file blob "$FBLOB" 2> /dev/null
env
exit 0
