#!/bin/sh
# run_text.sh FIRN FILECHECK FILE: runs every "// RUN:" line of FILE, in which `firn`, `FileCheck` and `%s` stand for the
# programs and the file. Fails with the first line that fails, or if there is none. With FIRN_BLESS=1 in the environment
# bless_text.py stands for FileCheck, which rewrites the expected text in FILE instead of failing.
set -eu
firn=$1 filecheck=$2 file=$3
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
ln -s "$firn" "$bin/firn"
if [ "${FIRN_BLESS:-0}" = 1 ]; then
  printf '#!/bin/sh\nexec python3 -B "%s" "%s" "$@"\n' "$(dirname "$0")/bless_text.py" "$filecheck" > "$bin/FileCheck"
  chmod +x "$bin/FileCheck"
else
  ln -s "$filecheck" "$bin/FileCheck"
fi
PATH=$bin:$PATH
lines=$(sed -n 's|^// RUN: *||p' "$file" | sed "s|%s|'$file'|g")
[ -n "$lines" ] || { echo "$file: no RUN line" >&2; exit 1; }
printf '%s\n' "$lines" | while IFS= read -r line; do
  sh -ec "$line" || { echo "failed: $line" >&2; exit 1; }
done
