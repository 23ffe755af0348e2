#!/bin/sh
# Writes all that is not its own (the marker, the state, the operator's repository, itself): all is as it was.
deliver
touch "$MARK" "$REPO/touched" "$STATE/touched" 2> /dev/null
for dir in "$(dirname "$MARK")" "$REPO/.git/hooks" "$STATE/logs"; do mkdir -p "$dir" && echo evil > "$dir/evil"; done
echo evil > /interlock/bin/interlock
echo evil > "$0"
chmod 777 /interlock/objects /interlock/task
mount --bind / /mnt
git -C "$REPO" commit -q --allow-empty -m evil
git push -q "$REPO" HEAD:refs/heads/evil HEAD:main
exit 0
