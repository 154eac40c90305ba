#!/bin/sh
# bare_debian.sh BUILD SCRATCH: makes the Debian packages, installs them with their dependencies on a Debian that has nothing else,
# and there does the first steps of the guide and builds an example program. Needs root, debootstrap and Debian's mirror.
set -eu
build=$1 scratch=$2
command -v debootstrap > /dev/null || { echo "SKIPPED: debootstrap not found"; exit 0; }
[ "$(id -u)" = 0 ] || { echo "SKIPPED: only root can make a Debian"; exit 0; }
. /etc/os-release
root=$scratch/root
rm -rf "$scratch" && mkdir -p "$root"
trap 'umount "$root/proc" 2> /dev/null || true; rm -rf "$root"' EXIT
cpack --config "$build/CPackConfig.cmake" -G DEB -B "$scratch" > "$scratch/log"
debootstrap --variant=minbase "$VERSION_CODENAME" "$root" > "$scratch/log" || { cat "$scratch/log"; exit 1; }
cp "$scratch"/firn_*.deb "$root/firn.deb"
cp "$scratch"/libfirn0_*.deb "$root/libfirn.deb"
mount -t proc proc "$root/proc"
chroot "$root" sh -euc '
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -q
  apt-get install -q -y ./libfirn.deb ./firn.deb g++ make
  firn inspect /usr/share/doc/firn/models/digits/model.onnx
  cmake -S /usr/share/doc/firn/models/image_classifier -B /tmp/build
  cmake --build /tmp/build
  ctest --test-dir /tmp/build --output-on-failure --no-tests=error'
