"""Rows of which some groups of columns have few different values, such as the levels of a category.

Each group is a column of codes and a table of its values, so that a row of 14 columns, five of them
of text, takes 46 bytes and not the 2,040 of 255 encoded numbers.
"""

import contextlib
import functools
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from gzkcore._util.state import doubles, floats, ints, sequence, stored
from gzkcore._util.typing import Doubles, Floats, Integers

PART = 1 << 16  # More rows chosen of mapped ones are mapped, too; so many are written at a time.


@dataclass(frozen=True)
class CodedRows:
    """Rows (n, d): numbers, and groups of columns of few different values.

    `toarray` and rows chosen by numbers are as those of sparse matrices.
    """

    _state = stored(
        numbers=floats("n", "p"),
        codes=ints("n", "g", least=-1),
        plain=ints("p"),
        columns=sequence(ints(None)),
        values=sequence(doubles(None, None)),
    )

    numbers: Floats  # (n, p)
    codes: NDArray[np.signedinteger[Any]]  # (n, g), of the smallest type
    plain: Integers  # (p,): the columns of numbers,
    columns: Sequence[Integers]  # and those of each group,
    values: Sequence[Doubles]  # which have these values, by code; -1: zeros
    folder: Any = None  # where numbers and codes are mapped; None: they are in memory

    @classmethod
    def of(cls, X: Doubles, columns: Sequence[Integers]) -> "CodedRows":
        """Return rows with these groups of columns; other numbers are rounded to single precision.

        Equal values of a group have equal sums with random weights. They are added column by
        column: a matrix product rounds its last rows differently.
        """
        codes, values = np.empty((len(X), len(columns)), np.int32), []
        rng = np.random.default_rng(0)
        for number, index in enumerate(columns):
            pairs = zip(index, rng.standard_normal(len(index)), strict=True)
            sums = sum(weight * X[:, column] for column, weight in pairs)
            _, first, codes[:, number] = np.unique(sums, return_index=True, return_inverse=True)
            values.append(X[first][:, index])
        plain = np.setdiff1d(np.arange(X.shape[1]), np.concatenate([[], *columns]))
        smallest = np.min_scalar_type(-max(map(len, values), default=1))
        return cls(X[:, plain].astype(np.float32), codes.astype(smallest), plain, columns, values)

    def _check_state(self) -> None:
        if sorted(np.concatenate([self.plain, *self.columns]).tolist()) != [*range(self.shape[1])]:
            raise ValueError("has not each of its columns once")
        for column, index, values in zip(self.codes.T, self.columns, self.values, strict=True):
            if values.shape[1] != len(index) or column.max(initial=-1) >= len(values):
                raise ValueError("has codes without values")

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and columns there are."""
        return len(self.numbers), len(self.plain) + sum(map(len, self.columns))

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, tuple):
            return self[rows[0]].columns_of(np.asarray(rows[1]))
        if self.folder is not None and not isinstance(rows, slice) and len(rows) > PART:
            return self.joined(self[some] for some in np.split(rows, range(PART, len(rows), PART)))
        return replace(self, numbers=self.numbers[rows], codes=self.codes[rows])

    def joined(self, parts: Iterable["CodedRows"]) -> "CodedRows":
        """Return rows with the codes of these put together, mapped if there is a folder."""
        if self.folder is None:
            numbers, codes = zip(*((part.numbers, part.codes) for part in parts), strict=True)
            return replace(self, numbers=np.concatenate(numbers), codes=np.concatenate(codes))
        both = mapped((part._records() for part in parts), self.folder)
        return replace(self, numbers=np.asarray(both["numbers"]), codes=np.asarray(both["codes"]))

    def _records(self) -> NDArray[np.void]:
        """Return the numbers and the codes of each row together."""
        both = {"numbers": self.numbers, "codes": self.codes}
        records = np.empty(len(self), [(k, part.dtype, part.shape[1:]) for k, part in both.items()])
        for name, part in both.items():
            records[name] = part
        return records

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"folder": None}

    def copy(self) -> Self:
        """Return these rows, whose numbers nobody changes."""
        return self

    @property
    def compact(self) -> Doubles:
        """The numbers and the codes, beside one another."""
        return np.concatenate([self.numbers, self.codes], axis=1, dtype=np.float64)

    def compacted(self, X: Doubles) -> Doubles:
        """Return the same of other rows, given all their numbers; -1 for values not among these."""
        return np.concatenate([X[:, self.plain], self.codes_of(X)], axis=1)

    def coded(self, X: Doubles) -> "CodedRows":
        """Return other rows with the codes of these, -1 for values not among these."""
        numbers, codes = X[:, self.plain].astype(np.float32), self.codes_of(X)
        return replace(self, numbers=numbers, codes=codes.astype(self.codes.dtype))

    def toarray(self) -> Doubles:
        """Return all numbers."""
        return self.columns_of(np.arange(self.shape[1]))

    def columns_of(self, index: Integers) -> Doubles:
        """Return the numbers in some columns."""
        X = np.empty((len(self), len(index)))
        here = np.isin(index, self.plain)
        X[:, here] = self.numbers[:, np.searchsorted(self.plain, index[here])]
        for codes, columns, values in zip(self.codes.T, self.columns, self.values, strict=True):
            here = np.isin(index, columns)
            if here.any():
                own = values[:, np.searchsorted(columns, index[here])]
                X[:, here] = np.vstack([own, np.zeros((1, own.shape[1]))])[codes]
        return X

    @functools.cached_property
    def _known(self) -> list[dict[bytes, int]]:
        """The codes of each group, by their values."""
        return [{row.tobytes(): code for code, row in enumerate(own)} for own in self.values]

    def codes_of(self, X: Doubles) -> NDArray[np.int32]:
        """Return the codes (n, g) of other rows, -1 for values that these rows do not have."""
        codes = np.empty((len(X), len(self.columns)), np.int32)
        for number, (index, known) in enumerate(zip(self.columns, self._known, strict=True)):
            part = np.ascontiguousarray(X[:, index], dtype=np.float64)
            codes[:, number] = [known.get(row.tobytes(), -1) for row in part]
        return codes


def mapped(parts: Iterable[NDArray[Any]], folder: str | os.PathLike[str]) -> NDArray[Any]:
    """Return arrays put together, mapped from a file in `temp_folder`.

    The file has no name: it is gone as soon as nothing maps it, however the process ends.
    """
    file = temporary_file(folder)
    with file.raw:  # a buffer would be written as it is closed, and fail again
        for part in parts:
            with _in_temp_folder(folder):
                file.write(part.data)
                file.flush()
        return np.memmap(file, part.dtype, "r")


def temporary_file(folder: str | os.PathLike[str]) -> Any:
    """Open a file without a name in `temp_folder`."""
    if not isinstance(folder, str | bytes | os.PathLike):  # numbers would be files that are open
        raise TypeError(f"temp_folder={folder!r} is no path; name a folder, or pass None")
    with _in_temp_folder(folder):
        return tempfile.TemporaryFile(dir=folder)


@contextlib.contextmanager
def _in_temp_folder(folder: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise type(error)(
            f"temp_folder={os.fspath(folder)!r} takes no rows ({error.strerror}); name another "
            "folder"
        ) from None
