#!/bin/sh
# Fills config with bytes that are no configuration, terminal codes among them: refused, and shown escaped.
#: exit 8
#: says cannot be imported
deliver
printf '[\033]0;owned\007\033[2J\202\203' > .git/config
