#!/bin/sh
# Passes only by a file that .gitignore hides from every commit: the check runs in a clean tree, and fails.
#: exit 8
#: says the checks failed
#: check grep -qx fixed hidden
#: base echo hidden > .gitignore
fix
echo fixed > hidden
