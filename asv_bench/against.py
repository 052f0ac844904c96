#!/usr/bin/env python3
"""Compare two installed versions of gzkcore by the benchmarks of this folder, in turn.

    python asv_bench/against.py OLD NEW [--bench REGEX | --quick]

OLD and NEW are folders with a package gzkcore each; `python3 run.py bench --against REV` makes them
and calls this. Two processes set up the same benchmark, each with its own version, and time it in
turn: A B, B A, A B, ... (asv's own `continuous --interleave-rounds` installs one version after the
other, so that there are minutes between the two). A ratio is the median of the rounds' ratios. A
benchmark that seems slower is run again, longer and in fresh processes, since the time of a process
may depend on the addresses of its arrays. The exit status is 1 if a slowdown is confirmed, or a
benchmark fails with NEW only; 2 if nothing could be compared.
"""

import argparse
import contextlib
import dataclasses
import importlib
import itertools
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
LOOKED_AT = 1.08  # a benchmark with this ratio is measured again; one of 1.3 has looked like 1.12
SLOWER = 1.15  # a confirmed ratio of this size is a regression

# What CI runs: a case or two of each kernel, most on one thread and on all, in a few minutes.
QUICK = "|".join(
    [
        r"^block\.FourierFeatures\.time_transform\(5000, 1000, block",
        r"^cholesky\.\w+\.time_gzkcore\(1000",
        r"^directions\.Means\.time_gzkcore\(9, ",
        r"^fastfood\.Transform\.time_gzkcore\(d=784, float32",
        r"^formulas\.AgainstReference\.",
        r"^fourier\.Transform\.time_gzkcore\(32, float32",
        r"^gegenbauer\.Transform\.time_transform_out\(.*, float32, gegenbauer",
        r"^gram\.Update\.time_gzkcore\(gegenbauer, 1024, float32",
        r"^hadamard\.Transform\.time_gzkcore\(14, float32",
        r"^harmonics\.HarmonicsToMemory\.time_gzkcore\(3, float32",
        r"^imports\.Import\.timeraw_features",
        r"^kernels\.GaussianMatrix\.time_gzkcore\(3, ",
        r"^maclaurin\.AgainstNumPy\.time_gzkcore\(9, float32",
        r"^model_io\.Model\.time_load",
        r"^products\.Matrix\.time_gzkcore\(3, float32",
        r"^products\.Product\.time_gzkcore\(.*, 9, 1, float32",
        r"^projection\.Transform\.time_gzkcore\(srht, 20000, 1000, float32",
        r"^ridge\.(Fit|Predict)\.time_gzkcore\(gegenbauer",
        r"^series\.",
        r"^sketch\.Transform\.time_gzkcore\(64, 3, 1000, float32",
        r"^special\.Polynomial\.time_gzkcore\(8, 3",
    ]
)

# These methods time other libraries, which are the same beside both versions.
OTHERS = re.compile(r"time(raw)?_(lapack|numpy|other|reference|scipy|sklearn|syrk|theirs)$")


# ---- one process: a version, and its benchmarks


@dataclasses.dataclass
class Case:
    """A method of a benchmark's class, and values of its parameters."""

    kind: type
    method: str
    values: tuple

    def call(self, cache):
        """Set up, and return the call to time."""
        benchmark = self.kind()
        arguments = self.values
        if hasattr(benchmark, "setup_cache"):
            if self.kind not in cache:
                cache[self.kind] = benchmark.setup_cache()
            arguments = (cache[self.kind], *arguments)
        if hasattr(benchmark, "setup"):
            benchmark.setup(*arguments)
        method = getattr(benchmark, self.method)
        if self.method.startswith("timeraw_"):
            program = [sys.executable, "-c", method(*arguments)]
            return lambda: subprocess.run(program, check=True)
        return lambda: method(*arguments)


def cases(module):
    """Return {name: Case} of the benchmarks in a module that run our code."""
    found = {}
    for kind in vars(module).values():
        if (
            not isinstance(kind, type)
            or kind.__module__ != module.__name__
            or kind.__name__[0] == "_"
        ):
            continue
        params = getattr(kind, "params", ())
        if params and not isinstance(params[0], list | tuple):
            params = (params,)
        libraries = [
            place
            for place, name in enumerate(getattr(kind, "param_names", ()))
            if name in {"library", "map"} and "gzkcore" in params[place]
        ]
        for method in dir(kind):
            if not re.match("time(raw)?_", method) or OTHERS.match(method):
                continue
            for values in itertools.product(*params):
                if all(values[place] == "gzkcore" for place in libraries):
                    shown = f"({', '.join(map(str, values))})" if values else ""
                    name = f"{module.__name__.split('.')[-1]}.{kind.__qualname__}.{method}{shown}"
                    found[name] = Case(kind, method, values)
    return found


def find(bench):
    """Return {name: Case} of all benchmarks that a regular expression finds, and what failed."""
    found, failed = {}, {}
    for path in sorted((HERE / "benchmarks").glob("[!_]*.py")):
        try:
            all_cases = cases(importlib.import_module(f"benchmarks.{path.stem}"))
        except (ImportError, AttributeError) as error:
            failed[path.stem] = f"{type(error).__name__}: {error}"
        else:
            found |= {name: case for name, case in all_cases.items() if re.search(bench, name)}
    return found, failed


def visit(call, seconds):
    """Call for so many seconds, and three times unless that takes long; return the median.

    A first call wakes threads and warms caches: it counts only if the call is a long one.
    """
    taken = []
    start = time.perf_counter()
    call()
    first = time.perf_counter() - start
    if first > 1.0:
        return first
    end = time.perf_counter() + seconds
    while len(taken) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def work():
    """Answer requests, one JSON list a line, until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever benchmarks print
    sys.path.insert(0, str(HERE))
    found, cache, call = {}, {}, None
    for line in sys.stdin:
        what, *arguments = json.loads(line)
        try:
            if what == "find":
                found, failed = find(*arguments)
                answer = [list(found), failed]
            elif what == "setup":
                call = None  # free the memory of the last one before the next is set up
                call = found[arguments[0]].call(cache)
                answer = "ready"
            else:
                answer = visit(call, *arguments)
        except NotImplementedError as error:
            answer = {"skipped": str(error)}
        except Exception as error:  # noqa: BLE001  # a benchmark may raise anything
            answer = {"failed": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


# ---- two processes in turn


class Version:
    """A process with one version."""

    def __init__(self, folder):
        self.process = subprocess.Popen(
            [sys.executable, "-P", __file__, "--work"],
            env=os.environ | {"PYTHONPATH": str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, *request):
        """Send a request."""
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps(request), file=self.process.stdin, flush=True)

    def answer(self):
        """Wait for the answer."""
        line = self.process.stdout.readline()
        if not line:
            return {"failed": f"the process ended with status {self.process.wait()}"}
        return json.loads(line)

    def told(self, *request):
        """Send a request and wait for the answer."""
        self.ask(*request)
        return self.answer()


@contextlib.contextmanager
def versions(old, new, bench):
    """Start both versions and let them look for benchmarks; end them, whatever happens."""
    started = []
    try:
        started += [Version(old)]
        started += [Version(new)]
        for version in started:
            version.ask("find", bench)
        yield started, [version.answer() for version in started]
    finally:
        for version in started:
            version.process.kill()
            version.process.communicate()


@dataclasses.dataclass
class Result:
    """The result of a case."""

    rounds: list = dataclasses.field(default_factory=list)  # pairs of seconds, old and new
    skipped: str = ""  # the reason why neither version, or not the old one, can run it
    failed: str = ""

    def seconds(self):
        """Return the median seconds of both versions."""
        return tuple(statistics.median(each) for each in zip(*self.rounds, strict=True))

    def ratio(self):
        """Return how many times slower the new version is."""
        return statistics.median(new / old for old, new in self.rounds)

    def slower(self):
        """Tell whether the new version is slower in the median, and in most rounds."""
        often = sum(new > old for old, new in self.rounds)
        return self.ratio() >= SLOWER and 4 * often >= 3 * len(self.rounds)


def measure(pair, name, rounds, seconds, most=20.0):
    """Time a case in both processes in turn; no new round after `most` seconds."""
    for version in pair:
        version.ask("setup", name)
    answers = [version.answer() for version in pair]
    result, end = Result(), time.monotonic() + most
    for number in range(rounds + 1):
        wrong = [each if isinstance(each, dict) else {} for each in answers]
        if "failed" in wrong[1] and "failed" not in wrong[0]:
            result.failed = wrong[1]["failed"]
        elif any(wrong):
            result.skipped = str(wrong[0] or wrong[1])
        if any(wrong) or number == rounds or (number > 1 and time.monotonic() > end):
            break
        answers = [0.0, 0.0]
        for place in (0, 1) if number % 2 == 0 else (1, 0):
            time.sleep(0.02)  # threads of BLAS and OpenMP spin for a while
            answers[place] = pair[place].told("visit", seconds)
        if not any(isinstance(each, dict) for each in answers):
            result.rounds.append(answers)
    return result


def tell(text):
    """Show the progress."""
    sys.stderr.write(f"{text}\n")


def compare(old, new, bench) -> Iterator[tuple[str, Result, str]]:
    """Measure, confirm, and yield name, result and verdict of each case."""
    with versions(old, new, bench) as (pair, ((before, lost), (after, broken))):
        for module, error in {**lost, **broken}.items():
            verdict = "failed" if module in broken and module not in lost else "not compared"
            yield module, Result(skipped=error), verdict
        results = {}
        both = [name for name in after if name in set(before)]
        for number, name in enumerate(both):
            tell(f"{number + 1}/{len(both)} {name}")
            results[name] = measure(pair, name, rounds=7, seconds=0.05)
    looks = [name for name, each in results.items() if each.rounds and each.ratio() >= LOOKED_AT]
    again = {name: Result() for name in looks}
    exactly = "|".join(f"^{re.escape(name)}$" for name in looks)
    for fresh in range(3 if looks else 0):
        with versions(old, new, exactly) as (pair, _):
            for name in looks:
                tell(f"again, {fresh + 1}/3: {name}")
                once = measure(pair, name, rounds=8, seconds=0.15)
                again[name].rounds += once.rounds
                again[name].failed = again[name].failed or once.failed
    for name, result in results.items():
        if result.failed or (name in again and again[name].failed):
            yield name, result, "failed"
        elif not result.rounds:
            yield name, result, "not compared"
        elif name in again:
            yield name, again[name], "SLOWER" if again[name].slower() else "not confirmed"
        else:
            yield name, result, "faster" if result.ratio() <= 1 / SLOWER else "same"


def table(rows):
    """Return the lines of a table of all results, and of what failed."""
    lines = [f"{'old ms':>10} {'new ms':>10} {'ratio':>6}  {'verdict':13}  benchmark"]
    for name, result, verdict in rows:
        if result.rounds:
            old, new = result.seconds()
            figures = f"{1e3 * old:10.3f} {1e3 * new:10.3f} {result.ratio():6.2f}"
        else:
            figures = f"{'-':>10} {'-':>10} {'-':>6}"
        why = result.failed or result.skipped
        lines.append(f"{figures}  {verdict:13}  {name}{f': {why}' if why else ''}")
    return lines


def main():
    """Compare, print the table, and return the exit status."""
    if sys.argv[1:] == ["--work"]:
        with contextlib.suppress(KeyboardInterrupt):
            work()
        return 0
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path, metavar="OLD")
    parser.add_argument("new", type=Path, metavar="NEW")
    parser.add_argument("-b", "--bench", default="", metavar="REGEX")
    parser.add_argument("--quick", action="store_true", help="the named subset that CI runs")
    chosen = parser.parse_args()
    bench = QUICK if chosen.quick else chosen.bench
    start = time.monotonic()
    rows = list(compare(chosen.old, chosen.new, bench))
    bad = [name for name, _, verdict in rows if verdict in {"SLOWER", "failed"}]
    end = f"{len(rows)} cases in {time.monotonic() - start:.0f} s, {len(bad)} slower or failed"
    sys.stdout.write("\n".join(["", *table(rows), "", end, *bad, ""]))
    return int(bool(bad)) if any(result.rounds for _, result, _ in rows) else 2


if __name__ == "__main__":
    sys.exit(main())
