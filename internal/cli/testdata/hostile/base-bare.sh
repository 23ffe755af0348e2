#!/bin/sh
# The base looks like a bare repository with a monitor, at its top and below: git is never started in it outside.
#: base for d in . sub; do mkdir -p $d/objects $d/refs $d/hooks; echo 'ref: refs/heads/main' > $d/HEAD; : > $d/objects/x; : > $d/refs/x; evil $d/hooks/post-checkout; printf '[core]\n\tbare = true\n\tfsmonitor = %s\n\tworktree = ..\n' "touch $MARK" > $d/config; done
deliver
