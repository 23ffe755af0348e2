#!/bin/sh
# Sets a credential helper and askpass to a program: neither is asked.
deliver
evil .git/evil
git config credential.helper "!$HERE/.git/evil"
git config core.askPass "$HERE/.git/evil"
git config http.proxy http://127.0.0.1:1
git config remote.origin.url https://127.0.0.1:1/x
