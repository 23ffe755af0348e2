#!/bin/sh
# Adds a workflow in one commit and removes it in the next: each commit is pushed, so each is looked at, and refused.
#: exit 8
#: says out of scope
mkdir -p .github/workflows
echo 'on: push' > .github/workflows/evil.yml
git add .github && git commit -q -m 'add a workflow'
git rm -q -r .github && git commit -q -m 'and take it back'
deliver
