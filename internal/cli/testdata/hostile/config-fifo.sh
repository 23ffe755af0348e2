#!/bin/sh
# Puts a FIFO in the place of config, so that whoever reads it hangs: the import is refused in time.
#: exit 8
#: says cannot be imported
#: then
deliver
rm .git/config
mkfifo .git/config
