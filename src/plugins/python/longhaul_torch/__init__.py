"""What `import torch` calls (entry point "torch.backends"): registers the backend "longhaul".

A package of its own: where longhaul cannot be imported, torch must be.
"""

import warnings


def register() -> None:
    """Registers the backend. Warns where that fails: a library is missing, or torch is too old."""
    try:
        import longhaul.torch  # registers it, at its end where it is what imports torch  # noqa: F401
    except (ImportError, OSError, RuntimeError, AttributeError) as error:
        warnings.warn(f"torch.distributed without the backend longhaul: {error}", stacklevel=2)
