#!/bin/sh
# Forges a signature in the commit, with gpg.program set: it is neither verified nor believed, nothing runs.
evil .git/evil
git config gpg.program "$HERE/.git/evil"
fix
git add answer
printf 'tree %s\nparent %s\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n iQ==\n -----END PGP SIGNATURE-----\n\nsigned\n' \
	"$(git write-tree)" "$BASE" | object commit > .git/hash
git update-ref HEAD "$(cat .git/hash)"
