#!/bin/sh
# Makes a configuration of 64 MiB: it is read or refused, in time and within the memory there is.
deliver
yes '# nothing' | head -c 67108864 >> .git/config
