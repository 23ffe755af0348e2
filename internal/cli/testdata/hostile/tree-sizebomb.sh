#!/bin/sh
# Commits one file of 64 MiB under 200 names, which packs into 64 KiB and checks out as 13 GB: refused, with the reason.
#: exit 8
#: says its files have more than
fix
blob=$(head -c 67108864 /dev/zero | git hash-object -w --stdin)
{ git ls-tree HEAD; for n in $(seq 200); do printf '100644 blob %s\tbig%s\n' "$blob" "$n"; done; } | git mktree > .git/tree
commit "$(cat .git/tree)"
