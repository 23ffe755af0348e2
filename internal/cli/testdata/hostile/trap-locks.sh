#!/bin/sh
# Leaves every lock file that git knows, work left uncommitted: none is in the way, the work is taken in.
#: then
for lock in index HEAD config packed-refs shallow ORIG_HEAD FETCH_HEAD; do : > ".git/$lock.lock"; done
mkdir -p .git/refs/heads/interlock && : > .git/refs/heads/interlock/issue-1.lock
: > .git/gc.pid
fix
