# Sourced by demo.sh and test.sh: installs the Debian packages that Firn needs and this machine lacks.

firn_packages="cmake ninja-build ccache g++ git llvm-19-dev llvm-19-tools libprotobuf-dev protobuf-compiler libeigen3-dev libcli11-dev catch2"

firn_say() { printf '== %s\n' "$*"; }
firn_fail() { printf 'error: %s\n' "$*" >&2; exit 1; }

# install_packages [more packages...]
install_packages() {
  missing=""
  for package in $firn_packages "$@"; do
    dpkg -s "$package" > /dev/null 2>&1 || missing="$missing $package"
  done
  [ -n "$missing" ] || return 0
  command -v apt-get > /dev/null || firn_fail "these packages are missing and there is no apt-get:$missing"
  sudo=""
  [ "$(id -u)" = 0 ] || sudo="sudo"
  firn_say "installing$missing"
  $sudo apt-get update -q || firn_fail "apt-get update failed"
  # LLVM 19 is in Debian 13 and in the backports and updates of Debian 12.
  DEBIAN_FRONTEND=noninteractive $sudo apt-get install -q -y --no-install-recommends $missing ||
    firn_fail "installing$missing failed"
}
