#!/bin/sh
# Puts a FIFO in the place of the tracked file: nothing waits for it, and the checks do not pass by it.
#: exit 8
#: says the agent changed nothing
rm answer
mkfifo answer
