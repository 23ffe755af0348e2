#!/bin/sh
# Fills its temporary directory, its home and the borrowed objects: what is its own is removed at the end, the rest refused.
fix
head -c 104857600 /dev/zero > "$TMPDIR/fill"
mkdir -p "$HOME/.cache" && head -c 104857600 /dev/zero > "$HOME/.cache/fill"
if echo x > /interlock/objects/fill || echo x > /interlock/task/fill; then rm answer; fi
exit 0
