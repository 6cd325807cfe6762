#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Sets this checkout up: the Debian packages that are missing, then the Python environment .venv.
#
#     sh scripts/setup.sh demo     what `make demo` needs and no more
#     sh scripts/setup.sh test     what the whole test suite needs; includes demo
#
# Root installs packages with apt-get, anyone else with sudo if it asks no password. Where neither may, the one line
# that does it is printed, and the exit code is 4. Where nothing is missing, apt-get is never called.
#
# .venv/.setup-STAGE is written last: a .venv without one is the ruin of an interrupted set-up and is built anew (a
# failed `python3 -m venv` leaves a working python3 behind, an interrupted pip half a package). It holds a checksum of
# what decides the contents of .venv, and the place it was made for, because a venv cannot be moved.
#
# Exit codes: 0 set up; 2 usage; 4 a tool is missing or too old; 6 the checkout cannot be written.

set -eu

# Each line: a command, and the Debian package that brings it. python3-venv and libc6-dev are found by other means.
demo_commands='
arm-none-eabi-gcc gcc-arm-none-eabi
qemu-system-arm   qemu-system-arm
'
test_commands="$demo_commands
gcc                     gcc
g++                     g++
clang-19                clang-19
llvm-mca-19             llvm-19
qemu-x86_64             qemu-user
riscv64-unknown-elf-gcc gcc-riscv64-unknown-elf
qemu-system-riscv64     qemu-system-misc
aarch64-linux-gnu-gcc   gcc-aarch64-linux-gnu
"

say() { printf 'set-up: %s\n' "$*" >&2; }

fail() { # CODE ERROR HINT
    printf 'error: %s\nhint:  %s\n' "$2" "$3" >&2
    exit "$1"
}

stage=${1-}
case $stage in
demo) commands=$demo_commands requirement=. stamps='demo' ;;
test) commands=$test_commands requirement='.[test]' stamps='demo test' ;;
*) fail 2 "setup.sh: expected 'demo' or 'test', got '$stage'" 'make demo and make setup call this script' ;;
esac

CDPATH='' cd -- "$(dirname -- "$0")/.." # every path below is relative to the checkout, whatever its name
place=$(pwd -P)
key=$(cat pyproject.toml scripts/setup.sh | cksum)

stamp_is() { # STAGE KEY: the stamp of STAGE was written here, and for KEY
    [ "$(cat ".venv/.setup-$1" 2>/dev/null)" = "$2
$place" ]
}

venv_is_finished() {
    stamp_is "$stage" "$key" && [ -x .venv/bin/python ] && [ -x .venv/bin/colibri ]
}

# --- Debian packages ------------------------------------------------------------------------------------------------

find_python() { # sets python, or else python_found: the ones that are too old
    python='' python_found=''
    for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
        command -v "$candidate" >/dev/null 2>&1 || continue
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            python=$candidate
            return
        fi
        python_found="$python_found $("$candidate" --version 2>&1)"
    done
}

has_libc_headers() {
    if command -v gcc >/dev/null 2>&1; then
        echo '#include <stdio.h>' | gcc -fsyntax-only -x c - 2>/dev/null
    else
        [ -e /usr/include/stdio.h ]
    fi
}

has_fuzzer_runtime() { # of clang-19: a library
    for library in "$(clang-19 -print-resource-dir 2>/dev/null)"/lib/*/libclang_rt.fuzzer*; do
        [ ! -e "$library" ] || return 0
    done
    return 1
}

find_missing() { # sets packages: the missing ones, each after a space
    packages=''
    while read -r command package; do
        [ -z "$command" ] || command -v "$command" >/dev/null 2>&1 || packages="$packages $package"
    done <<END
$commands
END
    if [ "$stage" = test ]; then
        has_libc_headers || packages="$packages libc6-dev"
        has_fuzzer_runtime || packages="$packages libclang-rt-19-dev"
    fi
    if venv_is_finished; then return; fi
    find_python
    if [ -n "$python" ]; then
        "$python" -c 'import ensurepip, venv' 2>/dev/null || packages="$packages python3-venv"
    elif [ -n "$python_found" ]; then
        fail 4 "python3: expected 3.11 or newer, got$python_found" 'install a newer Python (Debian 12 has 3.11)'
    else
        packages="$packages python3 python3-venv"
    fi
}

refuse() { # WHY
    fail 4 "$1" "run this line as root (update the package lists first), then the same make command again

apt-get install -y --no-install-recommends$packages"
}

apt() {
    # A root shell opened by a plain `su` lacks /usr/sbin, which dpkg needs. A daemon that a package starts must not
    # inherit the lock.
    ${sudo:+sudo -n} env DEBIAN_FRONTEND=noninteractive PATH="$PATH:/usr/sbin:/sbin" \
        apt-get -q -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@" </dev/null >&2 9<&-
}

install_missing() {
    command -v apt-get >/dev/null 2>&1 ||
        fail 4 "tools are missing, and this system has no apt-get; Debian's names for them:$packages" \
            'install them as your system does, then the same make command again'
    sudo=''
    if [ "$(id -u)" != 0 ]; then
        if command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
            sudo=yes
        else
            refuse "Debian packages are missing, and only root may install them:$packages"
        fi
    fi
    say "installing these Debian packages and what they depend on, nothing recommended:$packages"
    apt update || say 'the package lists could not be updated: going on with those at hand'
    # shellcheck disable=SC2086  # packages is a list
    apt install -y --no-install-recommends $packages || refuse "the packages could not be installed:$packages"
    find_missing
    [ -z "$packages" ] || refuse "still missing after the installation:$packages"
}

# --- The Python environment -----------------------------------------------------------------------------------------

restore_stamps() { # pip refused and changed nothing of what was there: the next run tries again on top of it
    for s in $stamps; do
        printf '%s\n%s\n' outdated "$place" >".venv/.setup-$s"
    done
}

build_venv() {
    [ -w . ] || fail 6 "$place: not writable for you" 'clone the repository to a folder of your own'
    updating=''
    for s in demo test; do
        if [ -x .venv/bin/python ] && [ "$(sed 1d ".venv/.setup-$s" 2>/dev/null)" = "$place" ]; then updating=yes; fi
    done
    if [ -n "$updating" ]; then
        say "updating .venv with the Python packages of '$requirement' in pyproject.toml"
        rm -f .venv/.setup-*
    else
        say "creating .venv with the Python packages of '$requirement' in pyproject.toml"
        "$python" -m venv --clear .venv || fail 4 "$python -m venv failed" 'its own words are above'
    fi
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-input --editable "$requirement" </dev/null || {
        [ -z "$updating" ] || restore_stamps
        fail 4 'pip could not install the Python packages' 'its own words are above; it needs a Python package index'
    }
    .venv/bin/python -c 'import colibri, colibri_sim' && [ -x .venv/bin/colibri ] ||
        fail 4 '.venv is incomplete although pip reported success' 'make distclean, then the same make command again'
    for s in $stamps; do
        printf '%s\n%s\n' "$key" "$place" >".venv/.setup-$s.new"
        mv -f ".venv/.setup-$s.new" ".venv/.setup-$s"
    done
    say 'done: .venv/bin/colibri'
}

# --------------------------------------------------------------------------------------------------------------------

find_missing
if [ -z "$packages" ] && venv_is_finished; then exit 0; fi

# One set-up at a time in a checkout; the lock is the open folder itself, so there is nothing to leave behind.
exec 9<.
if command -v flock >/dev/null 2>&1; then flock 9; fi

find_missing
if [ -n "$packages" ]; then install_missing; fi
if ! venv_is_finished; then build_venv; fi
