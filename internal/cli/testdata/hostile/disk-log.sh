#!/bin/sh
# Prints 200 MiB: the log is cut at its bound, and says so.
fix
yes 'the disk is to be filled by what is printed' | head -c 209715200
