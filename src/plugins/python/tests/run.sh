#!/bin/bash
# Tests the Python package as users get it: pip installs it into an empty virtual environment.
#   run.sh package    builds and installs it, runs test_package.py, checks that uninstalling leaves no file
#   run.sh torch      the same environment, with torch: test_torch.py, test_training.py, test_messages.py,
#                     test_sequences.py, test_hierarchical.py
#   run.sh torchft    and with torchft: test_torchft.py
#   run.sh mpi4py     and with mpi4py: test_mpi4py.py, under the mpirun of each MPI that is here
#   run.sh training   torchft's own tests of its Manager, LocalSGD and DiLoCo, test_deaths.py; by hand, for
#                     their time limits
#   run.sh memory SECONDS  memory of two ranks over random operations: test_memory.py; by hand
#   run.sh installed  the tests of "torch" in the environment LH_VENV, with the torch and the package that it
#                     has; by hand, for another release of torch
# Skipped, with the reason, where python3 is missing, or a package index cannot be reached. LH_OWN_NETWORK: a
# command that runs the tests in a network of their own.
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=${LH_BUILD_DIR:?the build folder}
venv=$build/python-venv
[ "${1:-}" != installed ] || venv=${LH_VENV:?the virtual environment}
python=$venv/bin/python
installed=$venv/longhaul-installed # its time: that of the package
torch=torch==2.13.0
unset PYTHONPATH LONGHAUL_LIBRARY LONGHAUL_COMMAND MALLOC_PERTURB_ GLIBC_TUNABLES
export PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1
export CMAKE_BUILD_PARALLEL_LEVEL=2
if command -v ccache >/dev/null 2>&1; then export CMAKE_C_COMPILER_LAUNCHER=ccache; fi

skip() {
    echo "skipped: $1"
    exit 77
}

# Packages of an index: where it cannot be reached, there is nothing to test.
fetch() {
    "$python" -m pip install --quiet --timeout 15 --retries 1 "$@" >"$build/python-venv.log" 2>&1 && return
    if grep -qiE 'connection broken by|max retries exceeded' "$build/python-venv.log"; then
        skip "pip cannot reach its index ($(grep -E '^ERROR' "$build/python-venv.log" | head -n 1))"
    fi
    cat "$build/python-venv.log"
    exit 1
}

install_package() {
    touch "$installed.begins"
    "$python" -m pip install --quiet --force-reinstall --no-deps "$here/.." || exit 1
    mv "$installed.begins" "$installed"
}

# Installs the package, unless it is there and newer than its sources.
update_package() {
    if [ ! -e "$installed" ] || ! "$python" -c 'import longhaul' 2>/dev/null; then
        install_package
    else
        newer=$(cd "$here/../../../.." &&
            find CMakeLists.txt cli include netsim src -type f -newer "$installed" ! -name '*.pyc' \
                ! -path 'src/plugins/python/tests/*' -print -quit) || exit 1
        [ -z "$newer" ] || install_package
    fi
}

own_network() {
    ${LH_OWN_NETWORK:-} "$@"
}

test_torch() {
    for name in torch training messages sequences hierarchical; do
        own_network "$python" "test_$name.py" || return
    done
}

if [ "${1:-}" != installed ] && ! "$python" -c 'import pip' 2>/dev/null; then
    python3 -m venv --clear "$venv" >"$build/python-venv.log" 2>&1 ||
        skip "python3 -m venv fails (install Debian's python3-venv)"
fi
cd "$here" || exit 1
case ${1:-} in
package)
    fetch cffi 'scikit-build-core>=0.10'
    install_package
    folder=$("$python" -c 'import longhaul, os; print(os.path.dirname(longhaul.__file__))') || exit 1
    own_network "$python" test_package.py || exit 1
    "$venv/bin/longhaul" --version || exit 1
    "$python" -m pip uninstall --quiet --yes longhaul || exit 1
    if [ -e "$folder" ] || [ -e "${folder}_torch" ] || [ -e "$venv/bin/longhaul" ]; then
        echo "uninstalling left files: $(find "$folder"* "$venv/bin/longhaul" 2>/dev/null)"
        exit 1
    fi
    install_package # for the tests with torch
    ;;
torch)
    fetch cffi "$torch" numpy
    update_package
    test_torch
    ;;
memory)
    fetch cffi "$torch" numpy
    update_package
    own_network "$python" test_memory.py "${2:?seconds}"
    ;;
installed)
    "$python" -c 'import torch; print("torch", torch.__version__)' || exit 1
    test_torch
    ;;
torchft | training)
    fetch cffi "$torch" numpy torchft==0.2.0 parameterized expecttest
    update_package
    words=()
    [ "$1" = torchft ] || words=(training)
    { own_network "$python" test_torchft.py ${words[@]+"${words[@]}"} &&
        { [ "$1" = torchft ] || own_network "$python" test_deaths.py; }; } 2>"$build/python-$1.log" || {
        grep -E '^(ERROR|FAIL): |Error|^Ran' "$build/python-$1.log" | tail -n 50 # torchft logs a lot
        exit 1
    }
    grep -E '^Ran|^OK' "$build/python-$1.log"
    ;;
mpi4py)
    command -v mpirun.openmpi >/dev/null || command -v mpirun.mpich >/dev/null ||
        skip "no mpirun (install Debian's openmpi-bin or mpich)"
    fetch cffi mpi4py==4.1.2
    update_package
    # The wheel of mpi4py looks for MPICH by the name that others with its ABI have.
    mkdir -p "$build/python-mpich"
    ln -sf "$(ldconfig -p | awk '/libmpich.so.12 /{print $NF; exit}')" "$build/python-mpich/libmpi.so.12"
    export LD_LIBRARY_PATH=$build/python-mpich
    for mpi in openmpi mpich; do
        command -v "mpirun.$mpi" >/dev/null || continue
        options=()
        [ "$mpi" = mpich ] || options=(--allow-run-as-root --oversubscribe)
        MPI4PY_MPIABI=$mpi own_network timeout 120 "mpirun.$mpi" "${options[@]}" -n 3 \
            "$python" test_mpi4py.py || exit 1
    done
    ;;
*)
    echo "usage: run.sh package|torch|torchft|mpi4py|training|memory|installed" >&2
    exit 2
    ;;
esac
