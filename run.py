#!/usr/bin/env python3
"""Set up everything in `.venv`, then do one job.

python3 run.py demo     the main job on real data: a table and a map
python3 run.py test     the tests; with -m slow those that take seconds each; with --all all, also
                        those that take minutes and those of data in $GZKCORE_DATA
python3 run.py papers   the papers' tables and figures, printed beside measured
python3 run.py fuzz     random inputs for formulas, estimators and files, for ten minutes; or,
                        with --minutes 30 first, as long as that
python3 run.py smallest the tests with the smallest versions of everything; start it with 3.11
python3 run.py sanitize tests of kernels that look for reads beyond arrays and the like; needs gcc;
                        with --thread for races, which needs clang with its OpenMP
python3 run.py coverage the tests, and which lines of Python and kernels they reach; needs gcc
python3 run.py check    linters, types, stubs, doctests
python3 run.py package  the source distribution, and a wheel of the same files that runs the
                        README's first example in an environment without anything else
python3 run.py bench    every benchmark once, quickly, to see that it runs; with --against REV those
                        that are slower than at that commit (--bench REGEX, or --quick as in CI)
python3 run.py docs     the documentation as a site, in build/docs; with --check its links too

What follows goes to the command: `python3 run.py test -k harmonics`, `python3 run.py bench --bench
hadamard`; of `docs` to sphinx-build, so that `python3 run.py docs -D plot_gallery=0` leaves out the
examples, which take minutes.

This needs Python with its headers, a C compiler and the package index. The first run compiles for
a few minutes, later ones only what has changed. To start afresh, delete `.venv`.
"""

import hashlib
import itertools
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent
# Other versions and other builds get an environment of their own, within the other.
OWN = {"smallest", "sanitize", "coverage"}
VENV = ROOT / ".venv" / (sys.argv[1] if sys.argv[1:2] and sys.argv[1] in OWN else "")
BIN = VENV / "bin"
# The environment's programs come first: the build finds its own Cython and ninja there.
ENVIRONMENT = os.environ | {"PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"}

# Tests of every marker but those that take minutes.
BUT_WEEKLY = "-m=not weekly"


def run(*command: str | Path, cwd: Path = ROOT) -> int:
    """Show a command, run it in the environment and return its exit status."""
    print("$", *(str(word).replace(f"{ROOT}{os.sep}", "") for word in command), flush=True)
    return subprocess.run(command, cwd=cwd, env=ENVIRONMENT, check=False).returncode


def must(*command: str | Path, cwd: Path = ROOT) -> None:
    """Run a command and stop here if it fails."""
    if status := run(*command, cwd=cwd):
        sys.exit(status)


@contextmanager
def minutes() -> Iterator[None]:
    """Show every minute that something is still under way."""
    done = threading.Event()

    def tell() -> None:
        for minute in itertools.count(1):
            if done.wait(60):
                return
            print(f"... {minute} min", flush=True)

    threading.Thread(target=tell, daemon=True).start()
    try:
        yield
    finally:
        done.set()


def install(
    *groups: str, extras: str = "cli", folder: str = "build", setup: Sequence[str] = ()
) -> None:
    """Build the package and install it as users have it, with these dependency groups beside it.

    The build runs in the environment itself, not in a passing one of its own, so that its folder
    can be kept and the next build is quick. `setup` is for meson.
    """
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    if not (BIN / "pip").exists():
        must(sys.executable, "-m", "venv", VENV)
    pip = (BIN / "pip", "install", "--quiet")
    must(*pip, "pip>=25.1", "ninja", *build)  # an older pip has no --group
    if groups:  # on a new Python some may have to be compiled, each in an environment of its own
        must(*pip, *(f"--group={group}" for group in groups))
    print("Compiling: a few minutes the first time, then only what has changed.", flush=True)
    options = (f"-Cbuild-dir={VENV / folder}", *(f"-Csetup-args={each}" for each in setup))
    with minutes():
        must(*pip, "--no-build-isolation", *options, f".[{extras}]")


def constrain() -> None:
    """Let pip take the lower bounds of pyproject.toml, to build with too, and nothing newer."""
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project, build = told["project"], told["build-system"]["requires"]
    cli = project["optional-dependencies"]["cli"]
    bounds = sorted({*build, *project["dependencies"], *cli})
    VENV.mkdir(parents=True, exist_ok=True)
    constraints = VENV / "smallest.txt"
    constraints.write_text("\n".join(bounds).replace(">=", "==") + "\n")
    print(constraints.read_text())
    ENVIRONMENT["PIP_CONSTRAINT"] = str(constraints)


def check() -> int:
    """Run every check, also after one has failed, and return how many failed."""
    config = ROOT / "pyproject.toml"
    stubs = sorted((ROOT / "gzkcore" / "_compiled").glob("*.pyi"))
    compiled = [f"gzkcore._compiled.{stub.stem}" for stub in stubs]
    doctests = ("--doctest-modules", "--doctest-glob=*.md")
    # As of the tests, in tests/conftest.py.
    ENVIRONMENT.update({"OPENBLAS_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"})
    # Types, stubs and doctests are those of the installed package, so they run away from the root.
    with tempfile.TemporaryDirectory() as folder:
        away = Path(folder)
        # Of docs only the pages: the examples are run by `python3 run.py docs`.
        pages = (f"--ignore-glob={ROOT / 'docs'}/*.py", ROOT / "docs")
        commands: list[tuple[Path, list[str | Path]]] = [
            (ROOT, ["ruff", "check"]),
            (ROOT, ["ruff", "format", "--check"]),
            (ROOT, ["cython-lint", "gzkcore"]),
            (ROOT, ["codespell"]),
            (ROOT, ["zizmor", "--offline", "."]),
            (ROOT, ["sp-repo-review", "."]),
            (away, ["mypy", "--config-file", config]),
            (away, ["stubtest", *compiled, "--mypy-config-file", config]),
            (away, ["pytest", "-nauto", "-c", config, *doctests, *pages, "--pyargs", "gzkcore"]),
        ]
        failed = [
            " ".join(map(str, command)) for cwd, command in commands if run(*command, cwd=cwd)
        ]
    print("\n".join(["Failed:", *failed]) if failed else "All checks passed.")
    return len(failed)


def tests(*options: str) -> int:
    """Run the tests, on all processors; with --all also those that take long."""
    rest = [option for option in options if option != "--all"]
    if "--all" in options:
        rest.insert(0, "-m=")  # no marker is left out
        if not os.environ.get("GZKCORE_DATA"):
            print("GZKCORE_DATA names no folder: tests that need data sets will be skipped.")
    return run("pytest", "--numprocesses=auto", *rest)


def fuzz(minutes: float, *options: str) -> int:
    """Run the fuzzers with other seeds until the time is up, or one fails; tell what was tried."""
    counts: Counter[str] = Counter()
    worst: dict[str, float] = {}
    end, seed, status = time.monotonic() + 60 * minutes, int(time.time()), 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ENVIRONMENT.update({"GZKCORE_FUZZ_EXAMPLES": "100"} | ENVIRONMENT | {"GZKCORE_FUZZ": name})
        while not status and time.monotonic() < end:
            seed += 1
            fuzzers = sorted((ROOT / "tests").glob("fuzz_*.py"))
            chosen = ("--numprocesses=auto", f"--hypothesis-seed={seed}", "-q", "--no-showlocals")
            status = run("pytest", *chosen, *fuzzers, *options)
            for path in folder.glob("found-*.json"):
                found = json.loads(path.read_text())
                counts.update(found["counts"])
                worst |= {k: max(v, worst.get(k, 0.0)) for k, v in found["worst"].items()}
                path.unlink()
            for path in folder.glob("last-*.txt"):
                print(f"A process ended in: {path.read_text().rstrip()}")
    print(*(f"{count:10,d}  {what}" for what, count in counts.most_common()), sep="\n")
    for where in sorted(worst, key=lambda where: -worst[where])[:5]:
        print(f"{worst[where]:10.2g}  of the tolerance is the worst error of {where}")
    return status


# Libraries that a Python which was not built with the sanitizers has to load first, and how these
# report: Python never frees all, and hostile sizes are refused as by a machine of 4 GB.
GCC = ["libasan.so", "libubsan.so", "libstdc++.so.6"]
CLANG = ["libclang_rt.asan-x86_64.so", "libstdc++.so.6"]
REPORTS = {
    "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=4096",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}
# The kernels against the formulas, on all kinds of arrays and threads, and files that mislead them.
SANITIZED = ["test_twins.py", "test_agnostic.py", "fuzz_twins.py", "_util", "features"]

# Of threads only clang's OpenMP says, through Archer, which waits for which. What wasn't compiled
# with the sanitizer is not heard, and every job is worth a thread.
THREAD_REPORTS = {"TSAN_OPTIONS": "ignore_noninstrumented_modules=1:exitcode=0"}
THREADS = {"GZKCORE_NUM_THREADS": "4", "GZKCORE_TESTS_WORTH": "1"}
THREADED = ["test_twins.py", "test_agnostic.py", "features", "passes/test_gram.py"]
# This sanitizer can't be loaded into a program, only be part of it.
PROGRAM = b"""int Py_BytesMain(int, char **);
int main(int argc, char **argv) { return Py_BytesMain(argc, argv); }"""


def compiler_says(question: str) -> str:
    """Return what the compiler prints for an option."""
    return subprocess.check_output([*shlex.split(ENVIRONMENT["CC"]), question], text=True).strip()


def python_of_threads() -> Path:
    """Link a Python with the sanitizer of threads; this needs Python as a shared library."""
    made, folder = BIN / "python-threads", sysconfig.get_config_var("LIBDIR")
    python = f"-lpython{sysconfig.get_config_var('LDVERSION')}"
    link = ("-fsanitize=thread", f"-L{folder}", f"-Wl,-rpath,{folder}", python)
    command = [*shlex.split(ENVIRONMENT["CC"]), "-xc", "-", "-o", str(made), *link]
    subprocess.run(command, input=PROGRAM, check=True)
    return made


def sanitize(*options: str) -> int:
    """Run tests with kernels that tell of their faults, and tell what they told."""
    thread = "--thread" in options
    compiler = ENVIRONMENT.setdefault("CC", "clang" if thread else "gcc")
    kind = "thread" if thread else "address"
    # Arrays may begin anywhere, as x86-64 and arm64 load them; of the two only clang tells of that.
    flags = "-march=native" + (" -fno-sanitize=alignment" if "clang" in compiler else "")
    quick = ("-Doptimization=1", "-Ddebug=true", "-Dplain=true", f"-Dc_args={flags}")
    faults = kind if thread else "address,undefined"
    setup = (f"-Db_sanitize={faults}", "-Db_lundef=false", *quick)
    install("test", folder=f"build-{Path(shlex.split(compiler)[0]).name}-{kind}", setup=setup)
    tests = THREADED if thread else SANITIZED
    chosen = [option for option in options if option != "--thread"]
    chosen = chosen or [str(ROOT / "tests" / name) for name in tests]
    pytest = (python_of_threads(), BIN / "pytest") if thread else ("pytest",)
    with tempfile.TemporaryDirectory() as folder:
        if thread:
            archer = Path(compiler_says("-print-resource-dir")).parents[1] / "libarcher.so"
            if not archer.exists():
                sys.exit(f"sanitize: there is no {archer}; install the OpenMP of {compiler}")
            ENVIRONMENT.update(THREADS | {"OMP_TOOL_LIBRARIES": str(archer)})
        else:
            libraries = CLANG if "clang" in compiler else GCC
            paths = [compiler_says(f"-print-file-name={library}") for library in libraries]
            ENVIRONMENT["LD_PRELOAD"] = " ".join(paths)
        for name, value in (THREAD_REPORTS if thread else REPORTS).items():
            ENVIRONMENT[name] = f"{value}:log_path={folder}/report"
        status = run(*pytest, "--numprocesses=auto", BUT_WEEKLY, "-q", "--no-showlocals", *chosen)
        texts = [path.read_text(errors="replace") for path in sorted(Path(folder).iterdir())]
    # Other lines are of memory that was refused, as it should be.
    signs = ("ERROR: ", "runtime error: ", "WARNING: ThreadSanitizer")
    reports = [text for text in texts if any(sign in text for sign in signs)]
    print(*reports, f"{len(reports)} reports of the sanitizers", sep="\n")
    return status or len(reports)


ADDED = ("__Pyx", "__pyx_tp_", "__pyx_pymod")  # how names of functions begin that Cython adds
REACHED = 95.0  # per cent of the lines, of Python and of the kernels each, that tests have to reach


def coverage(*options: str) -> int:
    """Run the tests, tell which lines of Python and of the kernels they reach, and judge that."""
    install("test", "coverage", setup=("-Db_coverage=true", "-Doptimization=1", "-Dplain=true"))
    for counts in (VENV / "build").rglob("*.gcda"):
        counts.unlink()
    ENVIRONMENT["COVERAGE_FILE"] = str(VENV / "lines")
    report = ("--cov", f"--cov-fail-under={REACHED}")
    chosen = ("--numprocesses=auto", BUT_WEEKLY, *report, *options)
    status = run("pytest", *chosen, "--cov-report=term:skip-covered")
    reached = compiled_lines()
    print(f"{'kernels':40}{'lines':>8}{'missed':>8}")
    total = missed = 0
    for name, counts in sorted(reached.items()):
        lost = sorted(line for line, count in counts.items() if not count)
        total, missed = total + len(counts), missed + len(lost)
        print(f"{name:40}{len(counts):8}{len(lost):8}  {' '.join(map(str, lost[:12]))}")
    share = 100 * (1 - missed / max(total, 1))
    print(f"Of {total} lines of the kernels the tests reach {share:.1f} %, of {REACHED} asked for.")
    return status or int(share < REACHED)


def compiled_lines() -> dict[str, dict[int, int]]:
    """Return of each source of the kernels how often each line was run, by gcov."""
    folder, build = ROOT / "gzkcore" / "_compiled", VENV / "build"
    sources = {path.name for path in folder.iterdir() if path.suffix in (".pyx", ".pxd", ".h")}
    reached: dict[str, dict[int, int]] = {}
    for counts in sorted(build.rglob("*.gcda")):
        command = ["gcov", "--json-format", "--stdout", counts]
        for each in json.loads(subprocess.check_output(command, cwd=build))["files"]:
            if (name := Path(each["file"]).name) not in sources:
                continue
            lines = reached.setdefault(name, {})
            for line in each["lines"]:
                # What Cython adds to a module has numbers of lines too, that mean nothing.
                if not line.get("function_name", "").startswith(ADDED):
                    number = line["line_number"]
                    lines[number] = lines.get(number, 0) + line["count"]
    return reached


def fingerprint(commit: str) -> str:
    """Return the name of what this commit is built to: by this compiler, for this NumPy."""
    compiler = [*shlex.split(ENVIRONMENT.get("CC", "cc")), "--version"]
    says = subprocess.run(compiler, capture_output=True, text=True, check=False).stdout
    listed = subprocess.check_output([BIN / "pip", "list", "--format=freeze"], text=True)
    tools = [line for line in listed.splitlines() if line.lower().startswith(("numpy=", "cython="))]
    flags = [ENVIRONMENT.get(name, "") for name in ("CC", "CFLAGS", "LDFLAGS")]
    facts = "\n".join([commit, says, *tools, *flags])
    return hashlib.sha256(facts.encode()).hexdigest()[:16]


def wheel_of(commit: str, folder: Path) -> Path:
    """Build a commit in a passing worktree, unless its wheel is kept, and return the wheel."""
    kept = VENV / "wheels" / fingerprint(commit)
    if not kept.is_dir():
        tree, made = folder / "tree", folder / "made"
        must("git", "worktree", "add", "--quiet", "--detach", tree, commit)
        try:
            print("Compiling that commit takes a few minutes, the first time.", flush=True)
            place = (f"-Cbuild-dir={folder / 'build'}", "--wheel-dir", made)
            with minutes():
                must(BIN / "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", *place, tree)
        finally:
            run("git", "worktree", "remove", "--force", tree)
        kept.parent.mkdir(exist_ok=True)
        shutil.move(made, kept)
    return next(kept.glob("*.whl"))


def against(revision: str, *options: str) -> int:
    """Compare what is installed from this folder with a commit, and return 1 if it is slower."""
    command = ["git", "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if found.returncode:
        sys.exit(f"bench: there is no commit {revision}; in a shallow clone, fetch it first.")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends as Ctrl-C does: it cleans up
    with tempfile.TemporaryDirectory(prefix="gzkcore-against-") as name:
        old = Path(name) / "old"
        wheel = wheel_of(found.stdout.strip(), Path(name))
        must(BIN / "pip", "install", "--quiet", "--no-deps", "--target", old, wheel)
        new = subprocess.check_output(
            [BIN / "python", "-c", "import sysconfig; print(sysconfig.get_path('platlib'))"],
            text=True,
        ).strip()
        script = ROOT / "asv_bench" / "against.py"
        return run(BIN / "python", "-P", script, old, new, *options)


def package() -> int:
    """Make the source distribution and a wheel, and use the wheel in an empty environment.

    The wheel has the kernels that `install` has compiled. A wheel of the source distribution would
    be the same, since that holds the same files.
    """
    example = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        to_folder = "import sys, mesonpy; mesonpy.build_sdist(sys.argv[1])"
        must(BIN / "python", "-P", "-c", to_folder, folder)
        if wrong := unlike(next(folder.glob("*.tar.gz"))):
            print("Commit first: the source distribution lacks, or has otherwise:", *wrong)
            return 1
        options = ("--no-deps", "--no-build-isolation", f"-Cbuild-dir={VENV / 'build'}")
        must(BIN / "pip", "wheel", "--quiet", *options, f"--wheel-dir={folder}", ".")
        must(sys.executable, "-m", "venv", folder / "empty")
        empty = folder / "empty" / "bin" / "python"
        must(empty, "-m", "pip", "install", "--quiet", *folder.glob("*.whl"))
        return run(empty, "-c", example[1], cwd=folder)


def unlike(distribution: Path) -> list[str]:
    """Return the files of the repository that a source distribution lacks, or has otherwise."""
    command = ["git", "ls-files", "-z"]
    listed = subprocess.check_output(command, cwd=ROOT, text=True)
    with tarfile.open(distribution) as packed:
        members = {member.name.partition("/")[2]: member for member in packed if member.isfile()}
        return [
            name
            for name in listed.split("\0")[:-1]
            if name not in members
            or packed.extractfile(members[name]).read() != (ROOT / name).read_bytes()
        ]


def docs(*options: str) -> int:
    """Build the site, a warning being an error; with --check try the links that lead out of it."""
    rest = [option for option in options if option != "--check"]
    sphinx = ("sphinx-build", "--fail-on-warning", "--keep-going", *rest)
    status = run(*sphinx, "-b", "html", "docs", "build/docs")
    if not status and "--check" in options:
        status = run(*sphinx, "-b", "linkcheck", "docs", "build/links")
    if not status:
        print(f"Open {ROOT / 'build' / 'docs' / 'index.html'}")
    return status


def main() -> int:
    """Do the job that the command line names."""
    match sys.argv[1:]:
        case ["demo", *options]:
            install()
            return run("gzkcore", "demo", *options)
        case ["test", *options]:
            install("test")
            return tests(*options)
        case ["fuzz", *options]:
            install("test")
            length, rest = (
                (options[1:2], options[2:]) if "--minutes" in options[:1] else ([], options)
            )
            return fuzz(float(*length or [10]), *rest)
        case ["smallest", *options]:
            constrain()
            install("test")
            return tests(BUT_WEEKLY, *options)
        case ["sanitize", *options]:
            return sanitize(*options)
        case ["coverage", *options]:
            return coverage(*options)
        case ["bench", *options] if "--against" in options[:-1]:
            install("bench", "test")
            place = options.index("--against")
            return against(options[place + 1], *options[:place], *options[place + 2 :])
        case ["bench", *options]:
            install("bench", "test")
            must("asv", "machine", "--yes", cwd=ROOT / "asv_bench")
            once = ("--quick", "--python=same", "--launch-method=forkserver", "--show-stderr")
            return run("asv", "run", *once, *options, cwd=ROOT / "asv_bench")
        case ["check"]:
            install("test", "lint")
            return check()
        case ["package"]:
            install()
            return package()
        case ["papers", *options]:
            install()
            ENVIRONMENT["PYTHONPATH"] = str(ROOT / "asv_bench")
            return run(BIN / "python", "-P", "-m", "papers", *options)
        case ["docs", *options]:
            install("docs", extras="cli,data,dask")
            return docs(*options)
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main())
