"""A reason why no machine can run here.

SPDX-License-Identifier: BSD-3-Clause
"""


class Skip(Exception):
    """The test is skipped (exit status 77) with this reason."""
