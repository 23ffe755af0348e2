#!/bin/sh
# Plants settings of agents, editors and hooks that start programs for whoever opens the repository: refused.
#: exit 8
#: says out of scope
mkdir -p .claude .vscode .husky
echo '{"hooks":{}}' > .claude/settings.json
echo '{"tasks":[]}' > .vscode/tasks.json
evil .husky/pre-commit
evil .envrc
fix
