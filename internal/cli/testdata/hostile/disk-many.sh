#!/bin/sh
# Leaves 30,000 empty files in 300 directories that git ignores: they cost no more than a look.
#: base echo '/many/' > .gitignore
fix
mkdir many && cd many
perl -e 'for my $d (1 .. 300) { mkdir $d; for (1 .. 100) { open my $f, ">", "$d/$_" } }'
