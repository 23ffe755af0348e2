#!/bin/sh
# Grafts a history without a base onto the base: it is not believed, the work is not built on its base.
#: exit 8
#: says not built on its base
fix
git add answer
orphan=$(echo orphan | git commit-tree "$(git write-tree)")
git update-ref HEAD "$orphan"
mkdir -p .git/info && echo "$orphan $BASE" > .git/info/grafts
