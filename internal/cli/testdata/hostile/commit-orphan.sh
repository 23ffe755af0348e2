#!/bin/sh
# Throws the history away and commits the fix without a parent: refused, it is not built on its base.
#: exit 8
#: says not built on its base
git checkout -q --orphan new
deliver
