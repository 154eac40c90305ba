#!/bin/sh
# package.sh BUILD SCRATCH: the Debian packages hold what a user needs and name what they depend on; an example program
# builds with the unpacked packages alone.
set -eu
build=$1 scratch=$2
fail() { echo "$*"; exit 1; }
for tool in cpack dpkg-deb dpkg-shlibdeps; do
  command -v $tool > /dev/null || { echo "SKIPPED: $tool not found"; exit 0; }
done
rm -rf "$scratch" && mkdir -p "$scratch"
cpack --config "$build/CPackConfig.cmake" -G DEB -B "$scratch" > "$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
deb=$(ls "$scratch"/firn_*.deb) library_deb=$(ls "$scratch"/libfirn0_*.deb)

fields=$(dpkg-deb --field "$library_deb")
for library in libc6 libprotobuf libstdc++6; do
  echo "$fields" | grep -q "^Depends:.*$library" || fail "no dependency on $library:
$fields"
done
twice=$(echo "$fields" | sed -n 's/^Depends: //p' | tr ',' '\n' | awk '{print $1}' | sort | uniq -d)
[ -z "$twice" ] || fail "the library's package depends twice on $twice"
fields=$(dpkg-deb --field "$deb")
echo "$fields" | grep -q "^Depends:.*libfirn0 (= " || fail "no dependency on the library's package"
echo "$fields" | grep -q "^Recommends: cmake" || fail "no recommendation of cmake"

root=$scratch/root
dpkg-deb -x "$deb" "$root"
dpkg-deb -x "$library_deb" "$root"
for file in bin/firn lib/libfirn.so.0 include/firn/model.h include/firn/jit.h share/firn/runtime/status.cpp lib/cmake/Firn/FirnConfig.cmake \
  share/man/man1/firn.1 share/bash-completion/completions/firn share/zsh/vendor-completions/_firn \
  share/fish/vendor_completions.d/firn.fish share/doc/firn/copyright share/doc/firn/README.md; do
  [ -s "$root/usr/$file" ] || fail "the package lacks /usr/$file"
done

example=$root/usr/share/doc/firn/models/image_classifier
PATH=$root/usr/bin:$PATH cmake -G Ninja -S "$example" -B "$scratch/example" "-DCMAKE_PREFIX_PATH=$root/usr" > "$scratch/log" ||
  { cat "$scratch/log"; exit 1; }
cmake --build "$scratch/example" > "$scratch/log" || { cat "$scratch/log"; exit 1; }
ctest --test-dir "$scratch/example" --output-on-failure --no-tests=error
