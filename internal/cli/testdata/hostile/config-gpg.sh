#!/bin/sh
# Sets gpg.program and has everything signed and verified: it never runs, what is left uncommitted is taken in.
evil .git/evil
for key in gpg.program gpg.ssh.program gpg.x509.program gpg.ssh.defaultKeyCommand; do git config "$key" "$HERE/.git/evil"; done
git config commit.gpgSign true
git config push.gpgSign true
git config log.showSignature true
git config user.signingKey nobody
fix
