"""Callbacks of scikit-learn, if the installed version has them (1.9), otherwise nothing."""

from collections.abc import Callable
from typing import Any, TypeVar

try:
    from sklearn.callback import CallbackSupportMixin
    from sklearn.callback import with_callbacks as _with_callbacks
except ImportError:  # an older scikit-learn

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """No callbacks to support."""

    def _with_callbacks(method: Any) -> Any:
        return method


__all__ = ["CallbackSupportMixin", "Progress", "with_callbacks"]


Method = TypeVar("Method", bound=Callable[..., Any])


def with_callbacks(method: Method) -> Method:
    """Let the callbacks of an estimator clean up when the method ends, however it ends."""
    managed: Method = _with_callbacks(method)
    return managed


class Progress:
    """Tells the callbacks of an estimator of the equal steps of a fit.

    There are at most `n_steps`, None if nobody knows; `task` says what a step is, and X and y what
    it works on, for callbacks that ask for it.
    """

    def __init__(
        self, estimator: Any, n_steps: int | None, task: str, X: Any = None, y: Any = None
    ):
        self.estimator, self.task, self.X, self.y = estimator, task, X, y
        self.context: Any = None
        if getattr(estimator, "_skl_callbacks", None):
            self.context = estimator._init_callback_context(max_subtasks=n_steps)
            self.context.call_on_fit_task_begin(estimator=estimator, X=X, y=y)

    def step(self, work: Any) -> bool:
        """Do work() as one step; return whether a callback asks to stop after it."""
        if self.context is None:
            work()
            return False
        context = self.context.subcontext(task_name=self.task)
        context.call_on_fit_task_begin(estimator=self.estimator, X=self.X, y=self.y)
        work()
        return bool(context.call_on_fit_task_end(estimator=self.estimator, X=self.X, y=self.y))

    def end(self) -> None:
        """Say that the fit is done."""
        if self.context is not None:
            self.context.call_on_fit_task_end(estimator=self.estimator, X=self.X, y=self.y)
