"""Products K V of a fit by the workers of a Dask cluster, with identical results to the last bit.

The rows are sent to every worker once, in tiles; later only vectors are sent. A product is divided
into runs of rows, depending only on the number of rows, and the runs are joined in order. So a run
that is computed again, because a worker was lost, gives the same result.
"""

import weakref
from collections.abc import Callable
from typing import Any, Self, TypeAlias

from gzkcore._util.typing import Doubles
from gzkcore._util.validation import raise_not_finite
from gzkcore.kernels.products import KernelOperator, Runs
from gzkcore.rows.dask import Held, client_of

Product: TypeAlias = Callable[[Doubles], Doubles]

# A task costs about a millisecond of the scheduler, a run of so many values of the kernel 10 or 20
# of a worker. With fewer than two of them a product stays here.
RUN_VALUES = 1 << 26
MOST_RUNS = 256


class Workers:
    """The workers that make products within a `with` block; after it they are made here.

    Parameters
    ----------
    distributed : bool, default=False
        Whether the rows were those of a Dask collection: without a cluster there are no workers.
    """

    def __init__(self, distributed: bool = False) -> None:
        self.client = client_of() if distributed else None
        self._products: weakref.WeakSet[SharedProduct] = weakref.WeakSet()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.client = None
        for product in self._products:
            product.stay()

    def product(self, operator: KernelOperator) -> Product:
        """Return V -> K V for the operator of some rows."""
        runs = Runs(operator, min(MOST_RUNS, operator.shape[0] * operator.shape[1] // RUN_VALUES))
        if self.client is None or runs.count == 1:
            here: Product = operator.matmat
            return here
        made = SharedProduct(operator, runs, self.client)
        self._products.add(made)
        return made


class SharedProduct:
    """V -> K V by workers, to whom the rows are sent when they are first wanted."""

    def __init__(self, operator: KernelOperator, runs: Runs, client: Any) -> None:
        self.operator, self.runs, self.client = operator, runs, client
        self._held: Held | None = None

    def __call__(self, V: Doubles) -> Doubles:
        """Return K V."""
        if self.client is None:
            here: Doubles = self.operator.matmat(V)
            return here
        raise_not_finite(V, "V", "leave those out")
        if self._held is None:
            self._held = Held(self.client, self.runs)
        return self.runs.join(self._held.each(Runs.product, self.runs.count, V))

    def stay(self) -> None:
        """Make further products here, and let the workers forget the rows."""
        self.client = self._held = None
