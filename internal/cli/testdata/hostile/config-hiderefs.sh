#!/bin/sh
# Hides its only ref from the fetch, so that it ends well and brings nothing: that is a failure, and says so.
#: exit 8
#: says cannot be imported
deliver
git config transfer.hideRefs HEAD
git config --add transfer.hideRefs refs
