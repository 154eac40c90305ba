#!/bin/sh
# reproducible.sh FIRN MODEL: two compilations in different folders give the same bytes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/a" "$work/b"
(cd "$work/a" && "$1" compile "$2" -o net --class t::Net -q)
(cd "$work/b" && "$1" compile "$2" -o "$work/b/net" --class t::Net -q)
for file in net.o net.h net.json; do cmp "$work/a/$file" "$work/b/$file"; done
