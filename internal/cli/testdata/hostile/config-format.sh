#!/bin/sh
# Claims a repository format and an object format that are not its own: refused, with the reason.
#: exit 8
#: says cannot be imported
deliver
git config core.repositoryFormatVersion 1
git config extensions.objectFormat sha256
