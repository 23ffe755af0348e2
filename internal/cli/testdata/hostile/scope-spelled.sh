#!/bin/sh
# Spells protected paths so that only other systems read them so (case, dots, streams, short names): refused.
#: exit 8
#: says out of scope
mkdir -p '.GitHub/Workflows' '.claude '
echo 'on: push' > '.GitHub/Workflows/x.yml'
echo '{}' > '.claude /settings.json'
fix
