"""The command `longhaul`, which comes with the package."""

from __future__ import annotations

import os
import pathlib
import sys

from longhaul._native import _library_folder


def path() -> pathlib.Path:
    """The executable: of LONGHAUL_COMMAND, else the package's. FileNotFoundError: there is none."""
    found = pathlib.Path(os.environ.get("LONGHAUL_COMMAND") or _library_folder() / "bin" / "longhaul")
    if not found.exists():
        raise FileNotFoundError(
            f"{found}: no such command (install the package again with pip, or set LONGHAUL_COMMAND)"
        )
    return found


def main() -> None:
    """Replaces this process by the command: the entry point `longhaul`."""
    os.execv(path(), ["longhaul", *sys.argv[1:]])
