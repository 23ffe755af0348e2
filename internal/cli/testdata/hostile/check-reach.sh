#!/bin/sh
# Brings a test that reads and writes all that is not its own: there is nothing to reach.
#: check sh test.sh
#: file answer
#: file test.sh
{
	sed -n "/^[A-Z]*='/p" "$0"
	echo 'touch "$MARK" "$REPO/touched" "$STATE/touched" /interlock/objects/touched 2> /dev/null'
	echo 'cat "$FOREIGN/secret" "$STATE/state.db" /proc/*/environ /proc/*/cwd/secret; git -C "$FOREIGN" log -p; env'
	echo 'grep -qx fixed answer'
} > test.sh
fix
