#!/bin/sh
# Declares itself shallow, so that a fetch ends well and leaves no ref: that is a failure, and says so.
#: exit 8
#: says cannot be imported
deliver
git rev-parse HEAD > .git/shallow
