#!/bin/sh
# Commits the issue's own claim as if the engine had moved it: the claim is looked for in the repository, not in the work.
deliver
git update-ref refs/interlock/claims/1 HEAD
git update-ref refs/heads/interlock/claims/1 HEAD
