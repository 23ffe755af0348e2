#!/bin/sh
# Merges 200 parents in one commit: looked at as any other.
fix
git add answer
parents=
for n in $(seq 200); do
	parents="$parents -p $(echo "$n" | git commit-tree "$BASE^{tree}" -p "$BASE")"
done
git update-ref HEAD "$(echo merge | git commit-tree "$(git write-tree)" -p "$BASE" $parents)"
