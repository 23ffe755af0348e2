#!/bin/sh
# Rewrites the base commit, with the same tree and another message: refused, it is not built on its base.
#: exit 8
#: says not built on its base
git commit -q --amend -m 'another base'
deliver
