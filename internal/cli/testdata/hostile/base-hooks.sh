#!/bin/sh
# The base has directories of hooks under every usual name: none runs, in no checkout of it.
#: base mkdir -p .githooks .husky hooks .git-hooks; for d in .githooks .husky hooks .git-hooks; do for h in post-checkout pre-commit post-index-change reference-transaction pre-push; do evil $d/$h; done; done
#: base evil .envrc; evil .pre-commit-config.yaml; mkdir -p .vscode .claude; echo '{}' > .claude/settings.json
deliver
