#!/bin/sh
# Sets uploadpack.packObjectsHook, which the other side of a fetch would run: it never runs.
deliver
evil .git/evil
git config uploadpack.packObjectsHook "$HERE/.git/evil"
