"""Work in a separate process, whose peak memory can be measured, and which can be killed.

A `Worker` starts another Python process and sends it a function and a task once, and then jobs.
Each job runs in a fork of that process; if forking is not safe, the process ends with the job and
the next job gets a new process. A job answers with each result that the function yields.
"""

import contextlib
import ctypes
import io
import json
import math
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType
from typing import IO, Any

from gzkcore._util.threads import n_threads
from gzkcore._util.wording import plain

_START = "from gzkcore.evaluate.worker import serve; serve()"
_PARENT = "GZKCORE_WORKS_FOR"  # set for the worker: the process that it works for
_PR_SET_PDEATHSIG = 1
_FORKS = sys.platform == "linux"  # elsewhere a fork may meet libraries that can't bear it


class RefusedError(ValueError):
    """The function raised an error, which says why it can't do the job."""


class EndedError(OSError):
    """The process ended before the job did, as the message says."""


class LateError(OSError):
    """A result took longer than its limit."""


class Worker:
    """A process that does jobs, started when it is needed, and again if it has ended; close it.

    The function `work(task, *job)` of a module yields results that JSON can hold.
    """

    def __init__(self, work: Callable[..., Iterator[Any]], task: Any) -> None:
        self._sent = _pickled((work, task))
        self._process: Any = None

    def run(self, *job: Any, limit: float = math.inf) -> Iterator[Any]:
        """Yield the results of a job, each of which may take `limit` seconds."""
        if self._process is None:
            self._start()
        requests, answers = self._process.stdin, self._process.stdout
        late = threading.Event()
        reason = died = None
        with contextlib.suppress(BrokenPipeError):
            requests.write(json.dumps(job).encode() + b"\n")
            requests.flush()
            while line := self._line(answers, limit, late):
                answer = json.loads(line)
                if "result" in answer:
                    yield answer["result"]
                elif "reason" in answer:
                    reason = answer["reason"]
                elif "died" in answer:
                    died = answer["died"]
                else:
                    if answer["last"]:
                        self.close()
                    if answer["ended"]:
                        raise EndedError(_death(answer["ended"]))
                    if died is not None:
                        raise EndedError(died)
                    if reason is not None:
                        raise RefusedError(reason)
                    return
        code = self.close()
        if late.is_set():
            raise LateError(f"it took more than {limit:g} s")
        raise EndedError(_death(code))

    def _line(self, answers: IO[bytes], limit: float, late: threading.Event) -> bytes:
        """Read a line; if it doesn't come in time, set `late` and end the process."""

        def end() -> None:
            late.set()
            self._kill()

        timer = threading.Timer(min(limit, threading.TIMEOUT_MAX), end)
        timer.daemon = True
        timer.start()
        try:
            return answers.readline()
        finally:
            timer.cancel()

    def _start(self) -> None:
        path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
        with tempfile.TemporaryFile() as errors:
            self._process = subprocess.Popen(  # noqa: S603  this Python, a line of ours
                [sys.executable, "-P", "-c", _START],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=os.environ
                | {"PYTHONPATH": path, _PARENT: str(os.getpid())}
                | dict.fromkeys(("GZKCORE_NUM_THREADS", "OMP_NUM_THREADS"), str(n_threads())),
                start_new_session=True,  # Ctrl-C is answered by the parent
            )
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.write(len(self._sent).to_bytes(8, "little") + self._sent)
                self._process.stdin.flush()
            if self._process.stdout.readline() == b"ready\n":
                return
            errors.seek(0)
            lines = errors.read().decode("utf-8", "replace").strip().splitlines()
        reason = lines[-1] if lines else _death(self._process.wait())
        raise OSError(f"the worker process could not start: {reason}")

    def _kill(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if hasattr(os, "killpg"):
                    os.killpg(self._process.pid, signal.SIGKILL)
                else:
                    self._process.kill()

    def close(self) -> int:
        """Kill the process and those that it has started; return its exit code."""
        if self._process is None:
            return 0
        self._kill()
        code = int(self._process.wait())
        for stream in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(BrokenPipeError):
                stream.close()
        self._process = None
        return code


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        """Refuse what a new process would look for in a script that it doesn't run."""
        if isinstance(value, type | FunctionType) and value.__module__ == "__main__":
            raise pickle.PicklingError(f"{value.__qualname__} is defined in a script or notebook")
        return NotImplemented


def _pickled(value: Any) -> bytes:
    file = io.BytesIO()
    try:
        _Pickler(file, pickle.HIGHEST_PROTOCOL).dump(value)
    except (AttributeError, TypeError, pickle.PicklingError) as error:
        raise ValueError(
            f"the arguments cannot be sent to another process ({error}); define functions, also "
            "those of kernels, in a module that is imported"
        ) from None
    return file.getvalue()


def _death(code: int) -> str:
    why = f"by signal {-code}" if code < 0 else f"with code {code}"
    return f"its process was ended {why}" + (" (out of memory?)" if code == -9 else "")


# ---- the other side


def serve() -> None:
    """Read a function and a task, then jobs, a line each; answer in lines of JSON.

    A line of an answer is {"result": what the function yields}, {"reason": why it raised} or
    {"died": what ran out, which it may not do again}; the last is {"ended": exit code, "last":
    whether the worker takes no more jobs}.
    """
    warnings.simplefilter("ignore")
    _end_with(int(os.environ[_PARENT]))
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what libraries print is no answer
    source = sys.stdin.buffer
    size = int.from_bytes(source.read(8), "little")
    work, task = pickle.loads(source.read(size))  # noqa: S301  from the parent process
    out.write(b"ready\n")

    def answer(**content: Any) -> None:
        out.write(json.dumps(content).encode() + b"\n")

    def do(job: list[Any]) -> None:
        try:
            for result in work(task, *job):
                answer(result=result)
        except (TypeError, ValueError) as error:
            answer(reason=plain(str(error)))
        except MemoryError as error:
            answer(died=f"there was not enough memory; {plain(str(error))}".rstrip("; "))
        except Exception as error:  # noqa: BLE001  the parent tells it
            answer(reason=f"{type(error).__name__}: {plain(str(error))}")

    while line := source.readline():
        job = json.loads(line)
        if not _FORKS:
            do(job)
            answer(ended=0, last=True)
            return
        answer(ended=_in_fork(do, job), last=False)


def _in_fork(do: Callable[[list[Any]], None], job: list[Any]) -> int:
    """Do a job in a child of this process; return the child's exit code."""
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        try:
            _end_with(parent)
            do(job)
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def _end_with(parent: int) -> None:
    """End this process when its parent ends, even if that is killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it has ended already
            os._exit(1)
    elif sys.platform != "win32":

        def watch() -> None:
            while os.getppid() == parent:
                time.sleep(1)
            os._exit(1)

        threading.Thread(target=watch, daemon=True).start()
