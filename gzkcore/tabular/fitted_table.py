"""What a model knows of the file that it was fitted to, beside the columns that it encodes."""

from dataclasses import dataclass, field

from gzkcore._util.state import nothing, number, sequence, stored, text


@dataclass
class FittedTable:
    """What `gzkcore predict` needs to read other files like that of the fit."""

    _state = stored(
        target=text(),
        missing=sequence(text()),
        west=number() | nothing(),
        window=sequence(number()),
    )

    target: str  # the name of the column that is predicted
    missing: list[str] = field(default_factory=list)  # words for a missing value
    west: float | None = None  # longitudes of places alone are counted from here
    window: list[float] = field(default_factory=list)  # of the map of the places of the fit
