"""Writes longhaul/_ffi.py: the declarations of the public headers, in cffi's form that needs no parser at
import.

    python make_ffi.py --include include --output longhaul/_ffi.py [--cc cc]

The C preprocessor reads the headers themselves, so that no struct and no constant is written down twice.
"""

import argparse
import pathlib
import re
import subprocess
import tempfile

import cffi

HEADERS = (
    "types",
    "error",
    "units",
    "stats",
    "code",
    "link",
    "scheme",
    "congestion",
    "connection",
    "engine",
    "queue",
    "onesided",
    "group",
    "collective",
    "launch",
    "hadamard",
    "model",
    "plan",
    "probe",
)
# What a header of the C library would declare: cffi knows these types.
SYSTEM = ("stdbool", "stddef", "stdint")
CONSTANT = re.compile(
    r"^#define (LH_\w+) +(\(1u << \d+\)|\d+u?|UINT32_MAX|UINT64_MAX|LH_TIME_NEVER)(?: .*)?$"
)
VALUES = {"UINT32_MAX": 2**32 - 1, "UINT64_MAX": 2**64 - 1, "LH_TIME_NEVER": 2**64 - 1}

# DLPack: the capsules of __dlpack__(), version 0 and 1 (dmlc/dlpack, dlpack.h).
DLPACK = """
typedef struct { void *data; int32_t device_type, device_id; int32_t ndim; uint8_t code, bits; uint16_t lanes;
                 int64_t *shape, *strides; uint64_t byte_offset; } lh_dl_tensor;
typedef struct { lh_dl_tensor tensor; void *context; void *deleter; } lh_dl_managed;
typedef struct { uint32_t major, minor; void *context; void *deleter; uint64_t flags; lh_dl_tensor tensor; }
    lh_dl_versioned;
"""


def preprocessed(cc, include):
    """The declarations of all headers, without comments, attributes and functions with a body."""
    with tempfile.TemporaryDirectory() as folder:
        for name in SYSTEM:
            pathlib.Path(folder, name + ".h").touch()
        source = "".join(f"#include <longhaul/{name}.h>\n" for name in HEADERS)
        text = subprocess.run(
            [
                cc,
                "-E",
                "-P",
                "-nostdinc",
                "-I",
                folder,
                "-I",
                str(include),
                "-D__attribute__(x)=",
                "-x",
                "c",
                "-",
            ],
            input=source,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    return re.sub(r"^static inline [^{]*\{.*?^\}", "", text, flags=re.M | re.S)


def constants(include):
    """#define lines of the numbers that the headers define."""
    for name in ("longhaul", *HEADERS):
        for line in (include / "longhaul" / f"{name}.h").read_text(encoding="utf-8").splitlines():
            found = CONSTANT.match(line)
            if found:
                value = VALUES.get(found[2])
                if value is None:
                    value = eval(found[2].replace("u", ""), {})  # a number, or a shift of 1
                yield f"#define {found[1]} {value}"


def main():
    parser = argparse.ArgumentParser(description="write the declarations of the public headers for cffi")
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--include", type=pathlib.Path, required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    ffi = cffi.FFI()
    ffi.cdef(
        "\n".join(
            [
                *constants(arguments.include),
                preprocessed(arguments.cc, arguments.include),
                DLPACK,
                "const char *lh_version(void);",
            ]
        )
    )
    ffi.set_source("longhaul._ffi", None)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    ffi.emit_python_code(str(arguments.output))


main()
