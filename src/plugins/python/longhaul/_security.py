"""Keys of connections and groups: who may be the peer, and what is encrypted.

As of the command: with a key everything is encrypted; without one only peers on this host are served and
connected to, unless the program says insecure=True.
"""

from __future__ import annotations

import os
import secrets
from typing import Any

from longhaul._native import ffi, lib

Key = str | bytes | os.PathLike[str] | None
_ENCRYPTIONS = {
    "full": lib.LH_ENCRYPTION_FULL,
    "auth": lib.LH_ENCRYPTION_AUTH,
    "off": lib.LH_ENCRYPTION_OFF,
}
_NAMES = {number: name for name, number in _ENCRYPTIONS.items()}
_KEY_MIN = 16  # bytes


def new_key() -> bytes:
    """A key of 32 random bytes."""
    return secrets.token_bytes(32)


def name_of_encryption(number: int) -> str:
    return _NAMES[number]


def security(
    key: Key,
    keep: list[Any],
    *,
    code: str | None = None,
    encryption: str | None = None,
    insecure: bool = False,
    launched: bool = False,
) -> Any:
    """A struct lh_security. keep: holds the memory that it points to.

    key: a key file; or bytes, a secret of at least 16 random ones; None: the file of LONGHAUL_KEY_FILE, if
    any. code: in its place, for one connection. encryption: "full", "auth" or "off"; None: "full" with a key.
    launched: the library takes a key of the launcher's environment where `key` is None. ValueError: what
    contradicts.
    """
    if encryption not in (None, *_ENCRYPTIONS):
        raise ValueError(f"encryption {encryption!r}: unknown (full, auth or off)")
    if insecure and (key is not None or code is not None or encryption in ("full", "auth")):
        raise ValueError("insecure: contradicts key, code and encryption (omit one)")
    made = ffi.new("struct lh_security *")
    lib.lh_security_init(made)
    keep.append(made)
    found = False
    if not insecure and encryption != "off":
        found = _set_key(made, key, code, launched, keep)
        if encryption is not None and not (found or launched):
            raise ValueError(f"encryption {encryption!r}: needs a key (pass key=, or set LONGHAUL_KEY_FILE)")
    made.encryption = _ENCRYPTIONS[encryption or "full"]
    if insecure or not (found or launched):
        made.encryption = lib.LH_ENCRYPTION_OFF
    # A launcher's key, where there is one, comes before it.
    made.loopback_only = not insecure and not found and (encryption is None or encryption == "off")
    return made


def _set_key(made: Any, key: Key, code: str | None, launched: bool, keep: list[Any]) -> bool:
    if key is not None and code is not None:
        raise ValueError("code: there is a key, too (pass one of them)")
    if key is None and code is None and not launched:
        key = os.environ.get("LONGHAUL_KEY_FILE") or None
    for name, value in (("key", key), ("code", code)):
        if value is None:
            continue
        if isinstance(value, bytes):
            if len(value) < _KEY_MIN:
                raise ValueError(f"key of {len(value)} bytes: too short ({_KEY_MIN} random ones or more)")
            held = ffi.new("char[]", value.hex().encode())
            made.secret = held
        else:
            held = ffi.new("char[]", os.fsencode(value))
            setattr(made, "key_file" if name == "key" else "code", held)
        keep.append(held)
        return True
    return False


def key_of_environment() -> str | bytes | None:
    """The launcher's secret, which is a text, or its key file; None: there is neither."""
    secret = os.environ.get("LONGHAUL_SECRET")
    if secret:
        return os.fsencode(secret)
    return os.environ.get("LONGHAUL_KEY_FILE") or None
