#!/bin/sh
# Allows the ext transport and names a remote, a submodule and a bundle by it: nothing is started.
deliver
git config protocol.ext.allow always
git config protocol.allow always
git config remote.origin.url "ext::sh -c 'touch $MARK'"
git config submodule.x.url "ext::sh -c 'touch $MARK'"
git config submodule.recurse true
git config fetch.bundleURI "ext::sh -c 'touch $MARK'"
