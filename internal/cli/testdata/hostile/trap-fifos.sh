#!/bin/sh
# Puts FIFOs in the place of packed-refs, a ref and alternates: the import is refused in time.
#: exit 8
#: says cannot be imported
deliver
rm -f .git/packed-refs .git/objects/info/alternates
mkfifo .git/packed-refs .git/objects/info/alternates .git/refs/heads/waits .git/shallow
