#!/bin/sh
# Commits trees that stand for ten thousand million files, and takes them back in the next commit: refused in time.
#: exit 8
#: says more than can be looked at
deliver
tree=$(git rev-parse HEAD^{tree})
for level in 1 2 3 4 5 6 7 8 9 10; do
	tree=$(for n in 0 1 2 3 4 5 6 7 8 9; do printf '040000 tree %s\t%s-a-name-that-is-long-and-tells-nobody-anything-at-all-and-goes-on-for-ever-and-ever\n' "$tree" "$n"; done | git mktree)
done
tree=$({ git ls-tree HEAD; printf '040000 tree %s\tbomb\n' "$tree"; } | git mktree)
bomb=$(echo bomb | git commit-tree "$tree" -p HEAD)
git update-ref HEAD "$(echo gone | git commit-tree HEAD^{tree} -p "$bomb")"
