#!/usr/bin/env bash
# Runs release/newcomer.py in a bare Debian, where there is no compiler: bare.sh SUITE PYTHON FILE.whl [ARGUMENT...]
# SUITE is such as bookworm or bullseye, PYTHON the interpreter's path there; "python3" is that of the distribution. Needs
# root and debootstrap. BARE_PYTHON names a folder that becomes /opt/python there, BARE_PACKAGES one with wheels, from which
# pip installs NumPy instead of from its index. Bases are kept in BARE_DIR, /tmp/embertable-bare by default.
set -euo pipefail
[ $# -ge 3 ] || { sed -n '2,5s/^# //p' "$0"; exit 2; }
suite=$1 python=$2 wheel=$(realpath "$3")
shift 3
checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
dir=${BARE_DIR:-/tmp/embertable-bare}
base=$dir/$suite root=$dir/$suite-root
mkdir -p "$dir"

if [ ! -e "$base/.complete" ]; then
  command -v debootstrap >/dev/null || apt-get install -y -qq debootstrap >/dev/null
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' | grep '/debian/*$' | head -n 1)
  rm -rf "$base"
  debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates "$suite" "$base" "$mirror" \
    >"$dir/debootstrap.log" || { tail -n 3 "$dir/debootstrap.log" >&2; exit 1; }
  touch "$base/.complete"
fi
unmount() { umount -l "$root/proc" "$root/dev" 2>/dev/null || true; }
trap unmount EXIT
unmount
rm -rf --one-file-system "$root"
cp -a "$base" "$root"
cp /etc/resolv.conf /etc/hosts "$root/etc/"
[ ! -f /etc/pip.conf ] || cp /etc/pip.conf "$root/etc/"
mkdir -p "$root/etc/ssl"
rm -rf "$root/etc/ssl/certs"
cp -rL /etc/ssl/certs "$root/etc/ssl/certs"
[ -z "${BARE_PYTHON:-}" ] || { mkdir -p "$root/opt" && cp -a "$BARE_PYTHON" "$root/opt/python"; }
mkdir -p "$root/embertable/release"
cp -r "$checkout/README.md" "$checkout/examples" "$root/embertable/"
cp "$checkout/release/newcomer.py" "$root/embertable/release/"
cp "$wheel" "$root/embertable/"
packages=${BARE_PACKAGES:-}
if [ -n "$packages" ]; then
  cp -r "$packages" "$root/packages"
  export PIP_NO_INDEX=1 PIP_FIND_LINKS=/packages
fi
env | grep -iE '^(https?_proxy|no_proxy|PIP_INDEX|PIP_CERT|PIP_NO_INDEX|PIP_FIND_LINKS|SSL_)' | sed 's/=\(.*\)$/="\1"/; s/^/export /' >"$root/env.sh" || true
mount --rbind /proc "$root/proc" && mount --make-rslave "$root/proc"
mount --rbind /dev "$root/dev" && mount --make-rslave "$root/dev"
chroot "$root" env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 bash -c '
  . /env.sh
  ! command -v cc gcc g++ clang || { echo "bare: there is a compiler" >&2; exit 1; }
  exec "$@"' bare "$python" /embertable/release/newcomer.py "/embertable/$(basename "$wheel")" "$@"
