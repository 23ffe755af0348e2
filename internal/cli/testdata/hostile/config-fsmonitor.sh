#!/bin/sh
# Sets core.fsmonitor to a program, work left uncommitted: it never runs, the work is taken in.
evil .git/evil
git config core.fsmonitor "$HERE/.git/evil"
fix
