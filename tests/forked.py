"""A program that computes features, then again in processes of its own: the same bits, no hang.

    python tests/forked.py raw fork

starts them as the arguments say: `raw` by os.fork, twice; `busy` from one thread while others
compute; else by a pool. It exits with 0 if all is well; whoever starts it sets a time limit.
"""

import multiprocessing
import os
import sys
import threading
from concurrent.futures import ProcessPoolExecutor

import joblib
import numpy as np

from gzkcore import (
    FastfoodFeatures,
    KernelRidge,
    NystromFeatures,
    RandomFourierFeatures,
    TensorSketchFeatures,
)


def computed(names=("sketch", "fastfood", "fourier", "nystrom", "ridge")):
    """Bytes of what kernels on two threads and BLAS give."""
    X = np.random.default_rng(0).standard_normal((600, 20))
    maps = {
        "sketch": TensorSketchFeatures(n_components=256, random_state=0),
        "fastfood": FastfoodFeatures(n_components=512, random_state=0),
        "fourier": RandomFourierFeatures(n_components=512, random_state=0),
        "nystrom": NystromFeatures(n_components=50, random_state=0),
    }
    found = [maps[name].fit_transform(X).tobytes() for name in names if name in maps]
    if "ridge" in names:
        found.append(KernelRidge("gaussian", random_state=0).fit(X, X[:, 0]).predict(X).tobytes())
    return found


def in_a_fork_of_a_fork(expected, generations=2):
    """Exit status of a process that was forked here, and forks again; None if it was killed."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            if computed() == expected:
                status = in_a_fork_of_a_fork(expected, generations - 1) if generations > 1 else 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def while_others_compute(expected):
    """Exit status of forks from a thread, while two other threads are within kernels."""
    stop, statuses = threading.Event(), []
    kernels = ("sketch", "fastfood", "fourier")

    def compute():
        while not stop.is_set():
            computed(kernels)

    def fork():
        for _ in range(5):
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    status = int(computed(kernels) != expected[:3])
                finally:
                    os._exit(status)
            statuses.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    others = [threading.Thread(target=compute) for _ in range(2)]
    forking = threading.Thread(target=fork)
    for thread in (*others, forking):
        thread.start()
    forking.join()
    stop.set()
    for thread in others:
        thread.join()
    return max(statuses)


def started(how, expected):
    """Whether all is the same, twice, in processes that a pool of this kind started."""
    if how in ("loky", "multiprocessing"):
        jobs = (joblib.delayed(computed)() for _ in range(2))
        found = joblib.Parallel(n_jobs=2, backend=how)(jobs)
    elif how == "pool":
        with multiprocessing.get_context("fork").Pool(2) as pool:
            found = pool.starmap(computed, [()] * 2)
    else:
        context = multiprocessing.get_context(how)
        n_processes = 2 if how == "fork" else 1  # others take seconds to start
        with ProcessPoolExecutor(n_processes, mp_context=context) as pool:
            found = [each.result() for each in [pool.submit(computed) for _ in range(2)]]
    return all(each == expected for each in found)


def main(ways):
    expected = computed()
    for how in ways:
        sys.stderr.write(f"{how}\n")
        if how == "raw":
            status = in_a_fork_of_a_fork(expected)
        elif how == "busy":
            status = while_others_compute(expected)
        else:
            status = int(not started(how, expected))
        if status != 0:
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
