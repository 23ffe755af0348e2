#!/bin/sh
# Makes a partial clone of itself whose missing file is to be fetched by a command: nothing is fetched, the work is refused.
#: exit 8
#: says cannot be imported
git config core.repositoryFormatVersion 1
git config extensions.partialClone origin
git config remote.origin.promisor true
git config remote.origin.partialCloneFilter blob:none
git config protocol.ext.allow always
git config remote.origin.url "ext::sh -c 'touch $MARK'"
missing=$(echo fixed | git hash-object --stdin)
git update-index --cacheinfo "100644,$missing,answer"
commit "$(git write-tree --missing-ok)"
