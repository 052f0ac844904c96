"""The globe: latitude and longitude as points on the unit sphere, lengths in kilometres."""

import math
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from gzkcore._util.typing import Doubles
from gzkcore._util.validation import check_array, validate_data
from gzkcore._util.wording import counted

EARTH_KM = 6371.0

Longitude = TypeVar("Longitude", float, Doubles)


class LatLonToSphere(TransformerMixin, BaseEstimator):
    """Map latitude and longitude in degrees to points on the unit sphere.

    (latitude, longitude) -> (cos lat cos lon, cos lat sin lon, sin lat)

    On the sphere there is no edge at 180 degrees, and the poles are points like all others. So a
    kernel of the distance between points means the same everywhere. There is nothing to fit.

    `transform` takes X of shape (n_samples, 2) with latitude from -90 to 90 and longitude from -180
    to 360 degrees. float32 is kept, everything else becomes float64. Other values raise a
    ValueError that names the row, counted from 0.

    See Also
    --------
    gzkcore.GegenbauerFeatures : Features of kernels on the sphere.

    Examples
    --------
    >>> from gzkcore import LatLonToSphere
    >>> LatLonToSphere().fit_transform([[0, 0], [0, 90], [90, 0]]).round(3) + 0.0
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """

    def fit(self, X: Any, y: Any = None) -> "LatLonToSphere":
        """Check the shape and the ranges of X; there is nothing else to learn."""
        self._validate(X, reset=True)
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Turn (n_samples, 2) degrees into (n_samples, 3) unit vectors."""
        X = self._validate(X, reset=False)
        latitude, longitude = np.radians(X.T, dtype=np.float64)
        out = np.empty((len(X), 3), X.dtype)
        np.multiply(np.cos(latitude), np.cos(longitude), out=out[:, 0], casting="same_kind")
        np.multiply(np.cos(latitude), np.sin(longitude), out=out[:, 1], casting="same_kind")
        np.sin(latitude, out=out[:, 2], casting="same_kind")
        return out

    def north_east(self, X: Any) -> Doubles:
        """Return the directions of slopes per kilometre north and east, for `KernelRidge.predict`.

        Parameters
        ----------
        X : array-like of shape (n_samples, 2)
            Latitude and longitude, as for `transform`. At a pole north is along this longitude.

        Returns
        -------
        ndarray of shape (n_samples, 2, 3)
            Tangents of the sphere of length 1 / 6371, the change of a point by one kilometre.

        Examples
        --------
        The latitude rises by 9 degrees in 1000 km to the north:

        >>> import numpy as np
        >>> from sklearn.pipeline import make_pipeline
        >>> from gzkcore import Gaussian, KernelRidge, LatLonToSphere
        >>> places = np.random.default_rng(0).uniform([-60, -180], [60, 180], (500, 2))
        >>> model = make_pipeline(LatLonToSphere(), KernelRidge(Gaussian(1.0), 1e-6))
        >>> _ = model.fit(places, places[:, 0])
        >>> along = LatLonToSphere().north_east([[40.0, 10.0]])
        >>> y, slope = model.predict([[40.0, 10.0]], return_gradient=along)
        >>> (1000 * slope).round(2) + 0.0
        array([[8.99, 0.  ]])
        """
        latitude, longitude = np.radians(self._validate(X, reset=False).T, dtype=np.float64)
        cos, sin, zero = np.cos(longitude), np.sin(longitude), np.zeros(len(longitude))
        north = -np.sin(latitude) * cos, -np.sin(latitude) * sin, np.cos(latitude)
        tangents: Doubles = np.array([north, (-sin, cos, zero)]).transpose(2, 0, 1)
        return tangents / EARTH_KM

    def inverse_transform(self, X: Any) -> NDArray[Any]:
        """Turn (n_samples, 3) vectors of any length but 0 into latitude and longitude."""
        X = check_array(X, dtype=(np.float64, np.float32))
        if X.shape[1] != 3:
            raise ValueError(
                f"X has {counted(X.shape[1], 'column')}, but a point on the sphere has 3: x, y, z"
            )
        x, y, z = X.T
        zero = (x == 0) & (y == 0) & (z == 0)
        if zero.any():
            raise ValueError(
                f"X, row {zero.argmax()}: the zero vector has no latitude or longitude; leave out "
                "such rows"
            )
        degrees: NDArray[Any] = np.degrees([np.arctan2(z, np.hypot(x, y)), np.arctan2(y, x)])
        return np.ascontiguousarray(degrees.T)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the three coordinates: x, y, z."""
        return np.array(["x", "y", "z"], dtype=object)

    def _validate(self, X: Any, reset: bool) -> Any:
        try:
            X = validate_data(self, X, dtype=(np.float64, np.float32), reset=reset)
        except ValueError as error:
            where, has_text, _ = str(error).partition("; pass numbers")
            if not has_text:
                raise
            what = "pass degrees as numbers, negative in the south and west"
            raise ValueError(f"{where}; {what}") from None
        if X.shape[1] != 2:
            raise ValueError(
                f"X has n_features={X.shape[1]}, but LatLonToSphere needs 2: latitude and longitude"
            )
        if (wrong := off_globe(X)) is not None:
            raise ValueError("X, row {}: {}".format(*wrong))
        return X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def off_globe(X: NDArray[Any]) -> tuple[int, str] | None:
    """Return the first row of X (latitude, longitude) out of range with a reason, or None."""
    latitude, longitude = X.T
    bad_latitude = ~(np.abs(latitude) <= 90)
    bad = bad_latitude | ~((longitude >= -180) & (longitude <= 360))
    if not bad.any():
        return None
    row = int(bad.argmax())
    if bad_latitude[row]:
        return row, (
            f"latitude {latitude[row]:g} is outside -90 to 90 degrees; "
            "are latitude and longitude the right way round?"
        )
    return row, f"longitude {longitude[row]:g} is outside -180 to 360 degrees"


def lengthscale_km(gamma: float) -> float:
    """Return the lengthscale 1 / sqrt(2 gamma) of a Gaussian on the globe in kilometres."""
    return EARTH_KM / math.sqrt(2 * gamma)


def from_west(longitude: Longitude, west: float = -180.0) -> Longitude:
    """Return longitudes as degrees in [west, west + 360)."""
    return (longitude - west) % 360 + west


def widest_gap(longitude: Doubles) -> tuple[float, float]:
    """Return west and east end of the widest range of longitudes without any value."""
    values = np.unique(longitude % 360)
    gaps = np.diff(values, append=values[0] + 360)
    widest = int(gaps.argmax())
    return float(values[widest]), float(values[widest] + gaps[widest])
