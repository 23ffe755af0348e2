#!/bin/sh
# Registers work trees that are the foreign repository and the operator's: neither is looked at.
deliver
for dir in "$FOREIGN" "$REPO"; do
	at=.git/worktrees/$(basename "$dir")
	mkdir -p "$at"
	echo "$dir/.git" > "$at/gitdir"
	echo ../.. > "$at/commondir"
	echo "$FCOMMIT" > "$at/HEAD"
done
