#!/bin/sh
# Closes its git directory to everybody: refused with the reason, and removed at the end.
#: exit 8
#: says cannot be imported
deliver
chmod 000 .git
