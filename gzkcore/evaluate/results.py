"""Results in a .json file, saved during the work and continued later.

A file holds experiments: the settings of each, and the results of its jobs, by the key of the job.
Several processes may write to a file at once; none overwrites the results of others.
"""

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from gzkcore._util.config import show_config
from gzkcore._util.files import check_place, replacing

if sys.platform != "win32":
    import fcntl

Settings: TypeAlias = dict[str, Any]
# The key of a job -> its outcome, as JSON can hold it.
Outcomes: TypeAlias = dict[str, dict[str, Any]]


class Store:
    """The outcomes of the jobs of an experiment, and the .json file that keeps them, if any.

    `settings` are those of the file, then those that are agreed on. `of` is the command that writes
    such files, for messages. `check(settings, outcomes)` raises KeyError, TypeError or ValueError
    if the file can't be one of this experiment.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        of: str,
        name: str,
        check: Callable[[Settings, Outcomes], None] = lambda *_: None,
    ) -> None:
        self.path = None if path is None else Path(path)
        self._of, self._name, self._check = of, name, check
        self.settings: Settings = {}
        self.outcomes: Outcomes = {}
        if self.path is not None:
            if self.path.suffix.lower() != ".json":
                raise ValueError(f"output {path} must end with .json")
            check_place(self.path)  # now, not after the first job
            self.settings, self.outcomes = self._read(self.path).get(name, ({}, {}))

    def agree(self, settings: Settings) -> None:
        """Work with these settings, and the machine's; raise ValueError if the file has others."""
        config = show_config()
        machine = {name: config[name] for name in ("version", "isa", "n_threads")}
        self.settings = self._agreed(self.settings, settings | machine)

    def keep(self, key: str, outcome: dict[str, Any]) -> None:
        """Add the outcome of a job, and write it with those that others have written meanwhile."""
        self.outcomes[key] = outcome
        if self.path is None:
            return
        with _alone(self.path.parent):
            experiments = self._read(self.path)
            settings, outcomes = experiments.get(self._name, ({}, {}))
            agreed = self._agreed(settings, self.settings)
            experiments[self._name] = agreed, outcomes | self.outcomes
            content = {
                name: {"settings": settings, "jobs": jobs}
                for name, (settings, jobs) in experiments.items()
            }
            with replacing(self.path) as beside:
                text = json.dumps({"experiments": content}, indent=1)
                beside.write_text(text + "\n", encoding="utf-8")

    def _agreed(self, before: Settings, now: Settings) -> Settings:
        for name, value in now.items():
            if before.get(name, value) != value:
                raise ValueError(
                    f"{self.path} has results of {self._name} for other settings: {name} was "
                    f"{before[name]}, and is {value} now; use the same settings, give another "
                    "output, or delete the file"
                )
        return before | now

    def _read(self, path: Path) -> dict[str, tuple[Settings, Outcomes]]:
        """Return settings and outcomes of every experiment in the file, if it is there."""
        if not path.exists():
            return {}
        try:
            experiments = {
                name: (dict(experiment["settings"]), dict(experiment["jobs"]))
                for name, experiment in json.loads(path.read_text("utf-8"))["experiments"].items()
            }
            if self._name in experiments:
                self._check(*experiments[self._name])
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{path} is not a result of {self._of} of this version ({type(error).__name__}: "
                f"{error}); give another output, or delete it"
            ) from None
        return experiments


def digest(values: Any) -> str:
    """Return shape and type of an array, or of a sparse matrix, and a checksum of its values."""
    about = f"{' x '.join(map(str, values.shape))} {values.dtype}"
    checksum = hashlib.sha256(about.encode())
    dense = isinstance(values, np.ndarray)
    for part in [values] if dense else [values.data, values.indices, values.indptr]:
        checksum.update(np.ascontiguousarray(part).tobytes())
    return f"{about}, checksum {checksum.hexdigest()[:16]}"


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Lock a folder, so that no other process writes results there, if the system can."""
    if sys.platform == "win32":
        yield
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # some network drives have no locks
            fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)
