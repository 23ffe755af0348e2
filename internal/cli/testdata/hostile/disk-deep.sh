#!/bin/sh
# Makes 3,000 directories in one another, deeper than any path can name: taken in or refused in time, and removed.
#: exit 8
#: says cannot be taken in
#: then
fix
perl -e 'for (1 .. 3000) { mkdir "d"; chdir "d" or die } open my $f, ">", "f"'
