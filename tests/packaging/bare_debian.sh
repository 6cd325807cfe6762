#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Tries the two commands of the README on a bare Debian 12: a debootstrap minbase chroot with python3, make, git and CA
# certificates; no sudo, no pip, no cc, no python3-venv. As root and as a user who may not install packages.
#
#     sh tests/packaging/bare_debian.sh [STEP ...]        steps: demo test wheel; default all
#
# Needs root and debootstrap, and says which is missing (exit 77: not run). The mirror, proxies and certificates are
# those of this machine's own apt and pip. What is committed in this checkout is tried, nothing else. The chroots live
# in $COLIBRI_BARE, default a temporary folder that is removed at the end; naming a folder keeps its bare system for
# the next run. About 30 minutes and 4 GB.

set -eu

skip() {
    echo "bare_debian.sh: NOT RUN: $*" >&2
    exit 77
}

[ "$(id -u)" = 0 ] || skip 'only root can chroot'
command -v debootstrap >/dev/null 2>&1 || skip 'debootstrap is missing: apt-get install debootstrap'
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Codename: bookworm' 'Origin: Debian' | head -n 1)
[ -n "$mirror" ] || skip 'the apt of this machine knows no Debian 12 (bookworm), or apt-get update was never run'

# Mounts are made in a namespace of this script's own: however it ends, none is left behind.
[ -n "${COLIBRI_BARE_INSIDE-}" ] || COLIBRI_BARE_INSIDE=yes exec unshare --mount sh "$0" "$@"

cd "$(dirname -- "$0")/../.."
steps=${*:-demo test wheel}
if [ -n "${COLIBRI_BARE-}" ]; then
    mkdir -p "$COLIBRI_BARE"
    work=$(cd "$COLIBRI_BARE" && pwd -P)
else
    work=$(mktemp -d -p "${TMPDIR:-/var/tmp}" colibri-bare.XXXXXX)
    trap 'rm -rf --one-file-system "$work"' EXIT
fi
trap 'exit 130' INT
trap 'exit 143' TERM

base=$work/base chroot=$work/chroot

# --- A bare system, set to this machine's registries ----------------------------------------------------------------

if [ ! -e "$work/base-is-complete" ]; then
    rm -rf --one-file-system "$base"
    debootstrap --variant=minbase --include=python3,make,git,ca-certificates bookworm "$base" "$mirror" \
        >"$work/debootstrap.log" 2>&1 || { tail "$work/debootstrap.log" >&2; exit 1; }
    cp -L /etc/resolv.conf "$base/etc/resolv.conf"
    apt-config dump Acquire | grep -E '^Acquire::(http|https|Check|Retries|ForceIPv)' >"$base/etc/apt/apt.conf.d/01host" || :
    cp -r /etc/apt/auth.conf.d/. "$base/etc/apt/auth.conf.d/" 2>/dev/null || :
    if [ -e /etc/pip.conf ]; then cp /etc/pip.conf "$base/etc/"; fi
    mkdir -p "$base/usr/local/share/ca-certificates"
    cp -r /usr/local/share/ca-certificates/. "$base/usr/local/share/ca-certificates/" 2>/dev/null || :
    chroot "$base" update-ca-certificates >/dev/null 2>&1
    chroot "$base" useradd -m -s /bin/sh engineer
    : >"$work/base-is-complete"
fi

fresh_chroot() {
    umount "$chroot/proc" 2>/dev/null || :
    rm -rf --one-file-system "$chroot"
    cp -a "$base" "$chroot"
}

# --- What is said and checked ---------------------------------------------------------------------------------------

as() { # USER COMMAND...: in the chroot, with nothing of this machine's environment but proxies and pip's index
    user=$1
    shift
    home=/root
    [ "$user" = root ] || home=/home/$user
    (
        set -- "$@"
        for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY PIP_INDEX_URL PIP_CERT SSL_CERT_FILE; do
            value=$(printenv "$name") && set -- "$name=$value" "$@"
        done
        exec env -i HOME="$home" LANG=C.UTF-8 PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin \
            chroot --userspec="$user" "$chroot" env "$@"
    ) </dev/null
}

clone() { # USER FOLDER: what is committed here
    git clone -q --no-local . "$chroot$2"
    chroot "$chroot" chown -R "$1" "$2"
}

ok() { echo "ok: $*"; }

not_ok() {
    echo "FAILED: $*" >&2
    exit 1
}

timed() { # LABEL COMMAND...
    label=$1
    shift
    start=$(date +%s)
    "$@" || not_ok "$label"
    ok "$label: $(($(date +%s) - start)) s"
}

installed() { # KiB of Debian packages
    chroot "$chroot" dpkg-query -W -f '${Installed-Size}\n' | awk '{ sum += $1 } END { print sum }'
}

must_refuse() { # USER FOLDER TARGET: make fails with the script's 4 and one line; sets line
    if as "$1" make -C "$2" "$3" >"$work/refusal" 2>&1; then not_ok "make $3 as $1 passed without the packages"; fi
    grep -q 'Error 4$' "$work/refusal" || { cat "$work/refusal"; not_ok "make $3 as $1: expected Error 4"; }
    [ "$(grep -c 'apt-get install' "$work/refusal")" = 1 ] || { cat "$work/refusal"; not_ok "not one apt-get install line"; }
    line=$(grep 'apt-get install' "$work/refusal")
    ok "make $3 as $1 stops with Error 4 and the line: $line"
}

root_folder="/srv/root's own colibri" user_folder="/srv/a user's colibri"

# --- The steps ------------------------------------------------------------------------------------------------------

demo() {
    fresh_chroot
    clone engineer "$user_folder"
    must_refuse engineer "$user_folder" demo
    before=$(installed)
    clone root "$root_folder"
    timed 'make demo as root, with set-up' as root make -C "$root_folder" demo
    ok "Debian packages added: $((($(installed) - before) / 1024)) MiB; .venv: $(du -sm "$chroot$root_folder/.venv" | cut -f 1) MiB"
    timed 'make demo as root again' as root make -C "$root_folder" demo
    timed 'make demo as a user, packages present' as engineer make -C "$user_folder" demo
}

test_suite() {
    fresh_chroot
    mount -t proc proc "$chroot/proc" # tests look there whether an interrupted simulator is gone; the demo needs none
    clone engineer "$user_folder"
    must_refuse engineer "$user_folder" setup
    before=$(installed)
    as root apt-get -q update
    # shellcheck disable=SC2086  # the line, word for word
    timed 'the line, as root' as root env DEBIAN_FRONTEND=noninteractive $line
    ok "Debian packages added: $((($(installed) - before) / 1024)) MiB"
    timed 'make setup as a user, packages present' as engineer make -C "$user_folder" setup
    timed 'make test as a user' as engineer make -C "$user_folder" test
    clone root "$root_folder"
    timed '.ci/run as root' as root env CI=true bash "$root_folder/.ci/run"
}

wheel() { # in the chroot of the step before, or a new one
    [ -x "$chroot/usr/bin/qemu-system-arm" ] || fresh_chroot
    [ -d "$chroot$root_folder" ] || clone root "$root_folder"
    timed 'make wheel' as root make -C "$root_folder" wheel
    as root python3 -m venv --clear /srv/empty-environment
    # shellcheck disable=SC2016  # expanded inside
    as root sh -c '/srv/empty-environment/bin/pip install -q --disable-pip-version-check "$1"/dist/*.whl' sh "$root_folder"
    rm -rf "$chroot$root_folder" "$chroot/srv/empty-folder"
    mkdir "$chroot/srv/empty-folder"
    timed 'colibri demo from the wheel, in an empty folder, with no checkout' \
        as root sh -c 'cd /srv/empty-folder && /srv/empty-environment/bin/colibri demo'
}

for step in $steps; do
    case $step in
    demo) demo ;;
    test) test_suite ;;
    wheel) wheel ;;
    *) echo "bare_debian.sh: unknown step '$step'" >&2; exit 2 ;;
    esac
done
echo "bare_debian.sh: all passed: $steps"
