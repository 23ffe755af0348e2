#!/bin/sh
# Prunes, repacks and removes the objects that it borrows from the engine: the engine's repository stays whole.
#: then
deliver
git repack -a -d -f -q
git prune --expire=now
git gc --prune=now --aggressive -q
rm -rf /interlock/objects/* 
git --git-dir=/interlock gc --prune=now -q
GIT_OBJECT_DIRECTORY=/interlock/objects git prune --expire=now
exit 0
