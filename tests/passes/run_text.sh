#!/bin/sh
# run_text.sh FIRN FILECHECK FILE: runs every "// RUN:" line of FILE, in which `firn`, `FileCheck` and `%s` stand for the
# programs and the file. Fails with the first line that fails, or if there is none.
set -eu
firn=$1 filecheck=$2 file=$3
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
ln -s "$firn" "$bin/firn"
ln -s "$filecheck" "$bin/FileCheck"
PATH=$bin:$PATH
lines=$(sed -n 's|^// RUN: *||p' "$file" | sed "s|%s|'$file'|g")
[ -n "$lines" ] || { echo "$file: no RUN line" >&2; exit 1; }
printf '%s\n' "$lines" | while IFS= read -r line; do
  sh -ec "$line" || { echo "failed: $line" >&2; exit 1; }
done
