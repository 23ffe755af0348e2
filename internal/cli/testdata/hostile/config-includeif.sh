#!/bin/sh
# Includes, on the condition of where it is read, a file that sets programs: none of them runs.
deliver
evil .git/evil
printf '[core]\n\tfsmonitor = %s\n[uploadpack]\n\tpackObjectsHook = %s\n' "$HERE/.git/evil" "$HERE/.git/evil" > .git/more
git config "includeIf.gitdir:$STATE/.path" more
git config "includeIf.gitdir:/.path" more
git config "includeIf.onbranch:**.path" more
git config "includeIf.hasconfig:remote.*.url:**.path" more
