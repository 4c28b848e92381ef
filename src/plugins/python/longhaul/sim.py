"""The network simulator: `run(scenario, **settings)` -> rows.

import longhaul.sim
rows = longhaul.sim.run("incast", workload={"senders": 16}, sweep={"switch.pfc": ["off", "on"]})
pandas.DataFrame(rows)                               # one row a run
"""

from __future__ import annotations

import csv
import json
import os
import pathlib
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from longhaul import command

__all__ = ["run", "scenarios"]


def run(
    scenario: str | os.PathLike[str],
    *,
    seed: int = 1,
    seeds: int = 1,
    sweep: Mapping[str, Sequence[Any]] | bool = True,
    table: str | None = None,
    timeout: float | None = None,
    **settings: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """Simulates a scenario, a file or the name of an installed one (`scenarios()`).

    settings: keys of the scenario, as section={"key": value} (`longhaul sim --keys` lists them). sweep:
    values for each of one or two keys "section.key", instead of the file's; False: none. seeds: number of
    runs with consecutive seeds. timeout: seconds of real time.

    Returns a row, a dict of numbers and texts, for each run: the values of the sweep, and the results (times
    in s, shares 0 to 1; None: none). table: "flows", "links" or "queues" returns the rows of that table
    instead, for a single run. RuntimeError: the command's message; TimeoutError.

    >>> row, = run("lone-flow", sweep=False)
    >>> row["failed"]
    0
    """
    arguments = ["sim", "--seed", str(seed), "--seeds", str(seeds)]
    for section, values in settings.items():
        if not isinstance(values, Mapping):
            raise TypeError(f'{section}: {values!r}: expected a dict, such as workload={{"senders": 16}}')
        for key, value in values.items():
            arguments += ["--set", f"{section}.{key}={_text(value)}"]
    if sweep is False:
        arguments.append("--no-sweep")
    elif sweep is not True:
        for name, choices in sweep.items():
            texts = [_text(choice) for choice in choices]
            arguments += ["--sweep", f"{name}={(' | ' if any(',' in t for t in texts) else ',').join(texts)}"]
    with tempfile.TemporaryDirectory() as folder:
        if table is not None:
            arguments += ["--output", folder]
        points = json.loads(_run([*arguments, "--json", "-", os.fspath(scenario)], timeout))["points"]
        if table is not None:
            return _table(pathlib.Path(folder), table)
    return [
        {**{key: _value(value) for key, value in point["sweep"].items()}, **result}
        for point in points
        for result in point["runs"]
    ]


def _table(folder: pathlib.Path, table: str) -> list[dict[str, Any]]:
    path = folder / f"{table}.csv"
    if not path.exists():
        known = ", ".join(sorted(each.stem for each in folder.glob("*.csv")))
        raise ValueError(
            f"table {table!r}: not written (written: {known or 'none'}; tables are those of a single run: "
            "pass sweep=False and seeds=1)"
        )
    with path.open(newline="", encoding="utf-8") as file:
        return [{key: _value(value) for key, value in row.items()} for row in csv.DictReader(file)]


def scenarios() -> list[str]:
    """Names of the installed scenarios."""
    listed = _run(["sim", "--list"], 30).splitlines()
    return [line.split()[0] for line in listed if line.startswith("  ") and "  " in line.strip()]


def _run(arguments: list[str], timeout: float | None) -> str:
    try:
        done = subprocess.run(
            [str(command.path()), *arguments], capture_output=True, text=True, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired:
        raise TimeoutError(
            f"simulation: not done after {timeout} s (shorten it, or pass a longer timeout)"
        ) from None
    if done.returncode:
        raise RuntimeError(done.stderr.strip() or f"longhaul sim ended with {done.returncode}")
    return done.stdout


def _text(value: Any) -> str:
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


def _value(cell: str | None) -> Any:
    for kind in (int, float):
        try:
            return kind(cell or "")
        except ValueError:
            pass
    return cell
