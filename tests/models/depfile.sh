#!/bin/sh
# depfile.sh FIRN MODEL: a compilation's dependency file names every file that it read.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo "firn-schedules 1" > "$work/schedules.db"
"$1" compile "$2" -o "$work/net" -q --schedule-db "$work/schedules.db" --depfile "$work/net.d"
for file in "$2" "$work/schedules.db"; do
  grep -qF "$file" "$work/net.d" || { echo "'$file' is not among the dependencies:"; cat "$work/net.d"; exit 1; }
done
