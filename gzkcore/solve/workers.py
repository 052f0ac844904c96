"""Products with a kernel matrix on the workers of a cluster of Dask."""

import weakref
from typing import Any, Self

from gzkcore._util.typing import Doubles
from gzkcore._util.validation import raise_not_finite
from gzkcore.kernels.products import KernelOperator, Runs
from gzkcore.rows.dask import Held, client_of

# Kernel values in a task: 10 or 20 ms of a worker, where the scheduler takes one. A product of
# fewer than two such tasks is computed here.
TASK_VALUES = 1 << 26
MOST_TASKS = 256


class Workers:
    """The workers that compute products within a `with` block; after it they are computed here.

    There are some if the rows are `distributed`, in a Dask collection, and there is a cluster.
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

    def product(self, operator: KernelOperator) -> Any:
        """Return V -> K V for the operator of some rows."""
        n_values = operator.shape[0] * operator.shape[1]
        runs = Runs(operator, min(MOST_TASKS, n_values // TASK_VALUES))
        if self.client is None or runs.count == 1:
            return operator.times
        shared = SharedProduct(operator, runs, self.client)
        self._products.add(shared)
        return shared


class SharedProduct:
    """V -> K V by workers, which get the rows with the first V."""

    def __init__(self, operator: KernelOperator, runs: Runs, client: Any) -> None:
        self.operator, self.runs, self.client = operator, runs, client
        self._held: Held | None = None

    def __call__(self, V: Doubles) -> Any:
        """Return K V."""
        if self.client is None:
            return self.operator.times(V)
        raise_not_finite(V, "V", "leave those out")
        if self._held is None:
            self._held = Held(self.client, self.runs)
        return self.runs.join(self._held.each(Runs.product, self.runs.count, V))

    def stay(self) -> None:
        """Compute further products here, and let the workers forget the rows."""
        self.client = self._held = None
