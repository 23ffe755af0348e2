#!/bin/sh
# Points core.worktree at the operator's and the foreign repository: the work is taken from the workspace alone.
fix
git config core.worktree "$FOREIGN"
git config extensions.worktreeConfig true
printf '[core]\n\tworktree = %s\n' "$REPO" > .git/config.worktree
