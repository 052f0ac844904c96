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
python3 run.py check    linters, types, doctests, and whether the benchmarks can be imported
python3 run.py package  the source distribution, and a wheel of the same files that runs the
                        README's first example in an environment without anything else
python3 run.py bench    every benchmark once, quickly, to see that it runs; with --against REV those
                        that are slower than at that commit (--bench REGEX, or --quick as in CI)
python3 run.py docs     the documentation as a site, in build/docs; with --check its links too; or,
                        with --numbers, numbers of the pages written anew by the commands that
                        print them: those that take minutes, or named ones (docs/write_numbers.py)

What follows goes to the command: `python3 run.py test -k harmonics`, `python3 run.py bench --bench
hadamard`; of `docs` to sphinx-build, so that `python3 run.py docs -D plot_gallery=0` leaves out the
examples, which take minutes.

This needs Python 3.11 or later with its headers, a C compiler and the package index; it says what
to install if one of the first two is missing. The first run compiles for a minute or more, later
ones only what has changed. Each step says how long it took; what pip and the compiler print is in
`.venv/log.txt`. To start afresh, delete `.venv`.
"""

# Python 3.8 can parse this file, and runs it far enough to say that it is too old.
from __future__ import annotations

import difflib
import hashlib
import importlib.util
import itertools
import json
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROOT = Path(__file__).resolve().parent
# Other versions and other builds get an environment of their own, within the other.
OWN = {"smallest", "sanitize", "coverage"}
VENV = ROOT / ".venv" / (sys.argv[1] if sys.argv[1:2] and sys.argv[1] in OWN else "")
BIN = VENV / "bin"
LOG = VENV / "log.txt"
# The environment's programs come first: the build finds its own Cython and ninja there.
ENVIRONMENT = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"}
# Python keeps what it compiles: else each of hundreds of processes would compile it again.
ENVIRONMENT.pop("PYTHONDONTWRITEBYTECODE", None)

OLDEST = (3, 11)  # the oldest Python that gzkcore supports
# {system: the command that installs a C compiler, and Python with its headers and `venv`}
INSTALL = {
    "Debian, Ubuntu": "sudo apt install {python}-dev {python}-venv gcc",
    "Fedora": "sudo dnf install {python}-devel gcc",
    "Alpine": "sudo apk add python3-dev build-base",
    "macOS": "xcode-select --install; brew install python",
}
# {ID in /etc/os-release: system}
SYSTEMS = {
    "debian": "Debian, Ubuntu",
    "ubuntu": "Debian, Ubuntu",
    "fedora": "Fedora",
    "rhel": "Fedora",
    "alpine": "Alpine",
}

# Tests of every marker but those that take minutes.
BUT_WEEKLY = "-m=not weekly"


def lacking(include: str) -> list[str]:
    """Return what this machine lacks to build gzkcore; Python's headers should be in `include`."""
    needs = []
    if sys.version_info < OLDEST:
        needs.append(
            f"Python {'.'.join(map(str, OLDEST))} or later (this is {platform.python_version()})"
        )
    elif not Path(include, "Python.h").is_file():
        needs.append(f"Python's header files (no Python.h in {include})")
    if not all(map(importlib.util.find_spec, ("ensurepip", "venv"))):
        needs.append("Python's modules ensurepip and venv")
    if not c_compiler():
        named = os.environ.get("CC")
        where = f"no {named}, which $CC names" if named else "no cc, gcc or clang"
        needs.append(f"a C compiler ({where}, in PATH)")
    return needs


def c_compiler() -> str | None:
    """Return the path of the C compiler that the build will find: $CC, or a usual one."""
    names = shlex.split(os.environ.get("CC", ""))[:1] or ["cc", "gcc", "clang"]
    path = next(filter(None, map(shutil.which, names)), None)
    if sys.platform == "darwin" and path and path.startswith("/usr/bin/"):
        # macOS has these programs before its compiler is installed; they only ask to install it.
        tools = subprocess.run(["/usr/bin/xcode-select", "-p"], capture_output=True, check=False)
        return None if tools.returncode else path
    return path


def this_system(release: Path = Path("/etc/os-release")) -> str | None:
    """Return the name that INSTALL has for this system, or None."""
    if sys.platform == "darwin":
        return "macOS"
    text = release.read_text(encoding="utf-8") if release.is_file() else ""
    ids = " ".join(re.findall(r"""^ID(?:_LIKE)?=["']?([^"'\n]*)""", text, re.MULTILINE))
    return next((SYSTEMS[word] for word in ids.split() if word in SYSTEMS), None)


def advice(needs: Sequence[str], system: str | None) -> str:
    """Return what is missing, and the commands that install it, that of this system first."""
    running = "python{}.{}".format(*max(OLDEST, sys.version_info[:2]))
    python = "python3" if Path("/usr/bin/python3").resolve().name == running else running
    lines = {name: f"    {INSTALL[name].format(python=python)}    # {name}" for name in INSTALL}
    first = [lines.pop(system), ""] if system else []
    opening = f"run.py: this machine lacks {', and '.join(needs)}. To install what is missing:"
    old = sys.version_info < OLDEST
    closing = f"Then start this again{' with the newer Python' if old else ''}."
    return "\n".join([opening, *first, *lines.values(), closing])


def run(*command: str | Path, cwd: Path = ROOT) -> int:
    """Show a command, run it in the environment, show its seconds and return its exit status."""
    print("$", *(str(word).replace(f"{ROOT}{os.sep}", "") for word in command), flush=True)
    begin = time.monotonic()
    status = subprocess.run(command, cwd=cwd, env=ENVIRONMENT, check=False).returncode
    print(f"{Path(command[0]).name} took {time.monotonic() - begin:.0f} s", flush=True)
    return status


def step(what: str, *command: str | Path, cwd: Path = ROOT) -> None:
    """Say what a command does and how long it takes; if it fails, show the end of the log and stop.

    What the command prints goes to the log alone. A long step shows every minute that it goes on.
    """
    print(what, end=" ... ", flush=True)
    begin = time.monotonic()
    LOG.parent.mkdir(parents=True, exist_ok=True)
    with LOG.open("ab") as log:
        log.write(f"$ {shlex.join(map(str, command))}\n".encode())
        log.flush()
        started = subprocess.Popen(
            command, cwd=cwd, env=ENVIRONMENT, stdout=log, stderr=subprocess.STDOUT
        )
        for minute in itertools.count(1):
            try:
                status = started.wait(60)
                break
            except subprocess.TimeoutExpired:
                print(f"{minute} min", end=" ... ", flush=True)
    print(f"{time.monotonic() - begin:.0f} s", flush=True)
    if status:
        lines = LOG.read_text(encoding="utf-8", errors="replace").splitlines()
        print(*lines[-30:], sep="\n", file=sys.stderr)
        sys.exit(f"run.py: this step failed: {what}. All it printed is in {LOG.relative_to(ROOT)}")


def project_file() -> dict:
    """Return what pyproject.toml says."""
    import tomllib  # Python 3.10 has no such module

    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


# A module is compiled when it is first imported: most of what is installed never is.
INSTALLING = ("install", "--no-compile")


def prepare() -> None:
    """Create the environment, with all that the build needs, and begin the log anew."""
    LOG.unlink(missing_ok=True)
    if not (BIN / "pip").exists():
        step("Making a virtual environment", sys.executable, "-m", "venv", VENV)
    requires = project_file()["build-system"]["requires"]
    tools = ("pip>=25.1", "ninja", *requires)  # an older pip has no --group
    step("Installing what the build needs", BIN / "pip", *INSTALLING, *tools)


# The tests run each kernel in each build that this processor runs.
ALL_LEVELS = ("-Dlevels=all",)


def install(
    *groups: str, extras: str = "cli", folder: str = "build", setup: Sequence[str] = ALL_LEVELS
) -> None:
    """Build the package and install it as users have it, with these dependency groups beside it.

    The build runs in this environment, not in a temporary one, and its folder stays: the next build
    compiles only what has changed. `setup` has options for meson, which keeps those of the last
    build: without any, the first one compiles for this processor alone.
    """
    prepare()
    project, pip = project_file()["project"], (BIN / "pip", *INSTALLING)
    needs = list(project["dependencies"])
    for extra in extras.split(","):
        needs += project["optional-dependencies"][extra]
    # On a new Python some may have to be compiled, each in an environment of its own.
    step("Installing what gzkcore needs", *pip, *needs, *(f"--group={group}" for group in groups))
    options = (f"-Cbuild-dir={VENV / folder}", *(f"-Csetup-args={option}" for option in setup))
    compiling = "Compiling: a minute or more the first time, then only what has changed"
    step(compiling, *pip, "--no-deps", "--no-build-isolation", *options, ".")


def constrain() -> None:
    """Hold pip to the lower bounds in pyproject.toml, of the packages to build with too."""
    settings = project_file()
    project, requires = settings["project"], settings["build-system"]["requires"]
    cli = project["optional-dependencies"]["cli"]
    bounds = sorted({*requires, *project["dependencies"], *cli})
    VENV.mkdir(parents=True, exist_ok=True)
    constraints = VENV / "smallest.txt"
    constraints.write_text("\n".join(bounds).replace(">=", "==") + "\n")
    print(constraints.read_text())
    ENVIRONMENT["PIP_CONSTRAINT"] = str(constraints)


def check() -> int:
    """Run every check, also after one has failed, and return how many failed.

    The doctests run beside the others, each of which takes one processor.
    """
    install("test", "lint", "bench")
    config = ROOT / "pyproject.toml"
    doctests = ("--doctest-modules", "--doctest-glob=*.md")
    # tests/conftest.py sets these for the tests.
    ENVIRONMENT.update({"OPENBLAS_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"})
    # The installed package has the types and doctests to check; in the root Python would find the
    # sources instead.
    with tempfile.TemporaryDirectory() as folder:
        away = Path(folder)
        # `python3 run.py docs` runs the examples in docs; here only the pages are checked.
        pages = (f"--ignore-glob={ROOT / 'docs'}/*.py", ROOT / "docs")
        commands: list[tuple[Path, list[str | Path]]] = [
            (ROOT, ["ruff", "check"]),
            (ROOT, ["ruff", "format", "--check"]),
            (ROOT, ["cython-lint", "gzkcore"]),
            (ROOT, ["codespell"]),
            (ROOT, ["zizmor", "--offline", "."]),
            (ROOT, ["sp-repo-review", "."]),
            (ROOT / "asv_bench", ["asv", "check", "--python=same"]),
            (away, ["mypy", "--config-file", config]),
        ]
        # The pages take longest: a process without work takes over some of another's.
        spread = ("-nauto", "--dist=worksteal", "-c", config)
        examples = ["pytest", *spread, *doctests, *pages, "--pyargs", "gzkcore"]
        with (away / "doctests.txt").open("w+", encoding="utf-8") as output:
            beside = subprocess.Popen(
                examples, cwd=away, env=ENVIRONMENT, stdout=output, stderr=subprocess.STDOUT
            )
            failed = [command for cwd, command in commands if run(*command, cwd=cwd)]
            if beside.wait():
                failed.append(examples)
            output.seek(0)
            print("$", *examples)
            print(output.read())
    for command in failed:
        print("Failed:", *command)
    if not failed:
        print("All checks passed.")
    return len(failed)


def demo(*options: str) -> int:
    """Run the main job and say how to go on; elevation.png of an earlier run is replaced."""
    install(setup=())
    replace = [] if any(option.startswith("--plot") for option in options) else ["--force"]
    status = run("gzkcore", "demo", *replace, *options)
    if not status:
        print(
            "To use gzkcore:  . .venv/bin/activate && cd ..  # here Python would find the sources"
        )
    return status


def tests(*options: str) -> int:
    """Run the tests, on all processors; with --all also those that take long."""
    install("test")
    rest = [option for option in options if option != "--all"]
    if "--all" in options:
        rest.insert(0, "-m=")  # no marker is left out
        if not os.environ.get("GZKCORE_DATA"):
            print("GZKCORE_DATA names no folder: tests that need data sets will be skipped.")
    return run("pytest", "--numprocesses=auto", *rest)


def smallest(*options: str) -> int:
    """Run the tests with the smallest versions that pyproject.toml allows."""
    constrain()
    return tests(BUT_WEEKLY, *options)


def fuzz(*options: str) -> int:
    """Run the fuzzers with other seeds until the time is up, or one fails; print what was tried."""
    install("test")
    length = 10.0
    if options[:1] == ("--minutes",):
        length, options = float(options[1]), options[2:]
    counts: Counter[str] = Counter()
    worst: dict[str, float] = {}
    end, seed, status = time.monotonic() + 60 * length, int(time.time()), 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ENVIRONMENT.setdefault("GZKCORE_FUZZ_EXAMPLES", "100")
        ENVIRONMENT["GZKCORE_FUZZ"] = name
        while not status and time.monotonic() < end:
            seed += 1
            fuzzers = sorted((ROOT / "tests").glob("fuzz_*.py"))
            chosen = ("--numprocesses=auto", f"--hypothesis-seed={seed}", "-q", "--no-showlocals")
            status = run("pytest", *chosen, *fuzzers, *options)
            for path in folder.glob("found-*.json"):
                report = json.loads(path.read_text())
                counts.update(report["counts"])
                worst |= {k: max(v, worst.get(k, 0.0)) for k, v in report["worst"].items()}
                path.unlink()
            for path in folder.glob("last-*.txt"):
                print(f"A process ended in: {path.read_text().rstrip()}")
    print(*(f"{count:10,d}  {what}" for what, count in counts.most_common()), sep="\n")
    for where in sorted(worst, key=lambda where: -worst[where])[:5]:
        print(f"{worst[where]:10.2g}  of the tolerance is the worst error of {where}")
    return status


# A Python that was not built with the sanitizers must load these libraries first. Leaks are not
# reported, because Python never frees all memory; an array of more than 4 GB cannot be allocated.
GCC = ["libasan.so", "libubsan.so", "libstdc++.so.6"]
CLANG = ["libclang_rt.asan-x86_64.so", "libstdc++.so.6"]
REPORTS = {
    "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=4096",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}
# These tests run the kernels on all kinds of arrays and threads, and load files that mislead them.
SANITIZED = ["test_twins.py", "test_agnostic.py", "fuzz_twins.py", "_util", "features"]

# Only clang's OpenMP reports, through Archer, which thread waits for which. Reports of code that
# was compiled without the sanitizer are ignored. Every loop runs on several threads, however short.
THREAD_REPORTS = {"TSAN_OPTIONS": "ignore_noninstrumented_modules=1:exitcode=0"}
THREADS = {"GZKCORE_NUM_THREADS": "4", "GZKCORE_TESTS_WORTH": "1"}
THREADED = ["test_twins.py", "test_agnostic.py", "features", "passes/test_gram.py"]
# The sanitizer of threads can't be loaded into Python, so a Python is linked with it.
PROGRAM = b"""int Py_BytesMain(int, char **);
int main(int argc, char **argv) { return Py_BytesMain(argc, argv); }"""


def compiler_says(question: str) -> str:
    """Return what the compiler prints for an option."""
    return subprocess.check_output([*shlex.split(ENVIRONMENT["CC"]), question], text=True).strip()


def python_of_threads() -> Path:
    """Link a Python with the sanitizer of threads; this needs Python as a shared library."""
    program, folder = BIN / "python-threads", sysconfig.get_config_var("LIBDIR")
    python = f"-lpython{sysconfig.get_config_var('LDVERSION')}"
    link = ("-fsanitize=thread", f"-L{folder}", f"-Wl,-rpath,{folder}", python)
    command = [*shlex.split(ENVIRONMENT["CC"]), "-xc", "-", "-o", str(program), *link]
    subprocess.run(command, input=PROGRAM, check=True)
    return program


def sanitize(*options: str) -> int:
    """Run tests with kernels that report their faults, and print the reports."""
    thread = "--thread" in options
    compiler = ENVIRONMENT.setdefault("CC", "clang" if thread else "gcc")
    kind = "thread" if thread else "address"
    # x86-64 and arm64 load arrays from any address; clang would report that as a fault.
    flags = "-march=native" + (" -fno-sanitize=alignment" if "clang" in compiler else "")
    quick = ("-Doptimization=1", "-Ddebug=true", "-Dlevels=plain", f"-Dc_args={flags}")
    faults = kind if thread else "address,undefined"
    setup = (f"-Db_sanitize={faults}", "-Db_lundef=false", *quick)
    install("test", folder=f"build-{Path(shlex.split(compiler)[0]).name}-{kind}", setup=setup)
    names = THREADED if thread else SANITIZED
    chosen = [option for option in options if option != "--thread"]
    chosen = chosen or [str(ROOT / "tests" / name) for name in names]
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
    # The other lines say that an allocation failed, as it should.
    signs = ("ERROR: ", "runtime error: ", "WARNING: ThreadSanitizer")
    reports = [text for text in texts if any(sign in text for sign in signs)]
    print(*reports, f"{len(reports)} reports of the sanitizers", sep="\n")
    return status or len(reports)


ADDED = ("__Pyx", "__pyx_tp_", "__pyx_pymod")  # functions that Cython adds have these prefixes
REACHED = 95.0  # the tests must reach so many per cent of the lines of Python, and of the kernels


def coverage(*options: str) -> int:
    """Run the tests, print which lines of Python and of the kernels they miss; fail if too many."""
    install("test", "coverage", setup=("-Db_coverage=true", "-Doptimization=1", "-Dlevels=plain"))
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
    print(f"The tests reach {share:.1f} % of {total} lines of the kernels; {REACHED} % are needed.")
    return status or int(share < REACHED)


def compiled_lines() -> dict[str, dict[int, int]]:
    """Return {source: {line: number of times it ran}} of the kernels, by gcov."""
    folder, build = ROOT / "gzkcore" / "_compiled", VENV / "build"
    sources = {path.name for path in folder.iterdir() if path.suffix in (".pyx", ".pxd", ".h")}
    reached: dict[str, dict[int, int]] = {}
    for counts in sorted(build.rglob("*.gcda")):
        command = ["gcov", "--json-format", "--stdout", counts]
        for source in json.loads(subprocess.check_output(command, cwd=build))["files"]:
            if (name := Path(source["file"]).name) not in sources:
                continue
            lines = reached.setdefault(name, {})
            for line in source["lines"]:
                # The code that Cython adds has line numbers too, but they mean nothing.
                if not line.get("function_name", "").startswith(ADDED):
                    number = line["line_number"]
                    lines[number] = lines.get(number, 0) + line["count"]
    return reached


def fingerprint(commit: str) -> str:
    """Return a name for the wheel of a commit that this compiler builds for this NumPy."""
    command = [*shlex.split(ENVIRONMENT.get("CC", "cc")), "--version"]
    version = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    listed = subprocess.check_output([BIN / "pip", "list", "--format=freeze"], text=True)
    tools = [line for line in listed.splitlines() if line.lower().startswith(("numpy=", "cython="))]
    flags = [ENVIRONMENT.get(name, "") for name in ("CC", "CFLAGS", "LDFLAGS")]
    facts = "\n".join([commit, version, *tools, *flags])
    return hashlib.sha256(facts.encode()).hexdigest()[:16]


def wheel_of(commit: str, folder: Path) -> Path:
    """Return the wheel of a commit; build it in a temporary worktree if there is none yet."""
    cache = VENV / "wheels" / fingerprint(commit)
    if not cache.is_dir():
        tree, wheels = folder / "tree", folder / "wheels"
        step("Checking out that commit", "git", "worktree", "add", "--detach", tree, commit)
        try:
            options = ("--no-deps", "--no-build-isolation", f"-Cbuild-dir={folder / 'build'}")
            wheel = (BIN / "pip", "wheel", *options, "--wheel-dir", wheels, tree)
            step("Compiling that commit: minutes, the first time", *wheel)
        finally:
            run("git", "worktree", "remove", "--force", tree)
        cache.parent.mkdir(exist_ok=True)
        shutil.move(wheels, cache)
    return next(cache.glob("*.whl"))


def against(revision: str, *options: str) -> int:
    """Compare what is installed from this folder with a commit, and return 1 if it is slower."""
    command = ["git", "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}"]
    commit = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if commit.returncode:
        sys.exit(f"bench: there is no commit {revision}; in a shallow clone, fetch it first.")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends as Ctrl-C does: it cleans up
    with tempfile.TemporaryDirectory(prefix="gzkcore-against-") as name:
        old = Path(name) / "old"
        wheel = wheel_of(commit.stdout.strip(), Path(name))
        step("Installing it", BIN / "pip", "install", "--no-deps", "--target", old, wheel)
        new = subprocess.check_output(
            [BIN / "python", "-c", "import sysconfig; print(sysconfig.get_path('platlib'))"],
            text=True,
        ).strip()
        script = ROOT / "asv_bench" / "against.py"
        return run(BIN / "python", "-P", script, old, new, *options)


def package() -> int:
    """Make the source distribution and a wheel, and use the wheel in an empty environment.

    The wheel has the kernels that earlier jobs have compiled. A wheel of the source distribution
    would be the same, since that holds the same files.
    """
    prepare()
    example = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        to_folder = "import sys, mesonpy; mesonpy.build_sdist(sys.argv[1])"
        step("Making the source distribution", BIN / "python", "-P", "-c", to_folder, folder)
        if names := unlike(next(folder.glob("*.tar.gz"))):
            print("Commit first: these files differ in the source distribution:", *names)
            return 1
        levels = (f"-Csetup-args={option}" for option in ALL_LEVELS)
        options = ("--no-deps", "--no-build-isolation", f"-Cbuild-dir={VENV / 'build'}", *levels)
        step("Making the wheel", BIN / "pip", "wheel", *options, f"--wheel-dir={folder}", ".")
        step("Making an empty environment", sys.executable, "-m", "venv", folder / "empty")
        empty = folder / "empty" / "bin" / "python"
        step("Installing the wheel", empty, "-m", "pip", *INSTALLING, *folder.glob("*.whl"))
        return run(empty, "-c", example[1], cwd=folder)


def unlike(distribution: Path) -> list[str]:
    """Return the repository's files that a source distribution lacks, or has in another state."""
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


def bench(*options: str) -> int:
    """Run every benchmark once, or compare two commits."""
    install("bench", "test")
    if "--against" in options[:-1]:
        place = options.index("--against")
        return against(options[place + 1], *options[:place], *options[place + 2 :])
    step("Telling asv of this machine", "asv", "machine", "--yes", cwd=ROOT / "asv_bench")
    once = ("--quick", "--python=same", "--launch-method=forkserver", "--show-stderr")
    return run("asv", "run", *once, *options, cwd=ROOT / "asv_bench")


def papers(*options: str) -> int:
    """Run the papers' tables and figures anew."""
    install(setup=())
    ENVIRONMENT["PYTHONPATH"] = str(ROOT / "asv_bench")
    return run(BIN / "python", "-P", "-m", "papers", *options)


def docs(*options: str) -> int:
    """Build the site, a warning being an error; with --check try the links that lead out of it.

    With --numbers write numbers of the pages anew instead.
    """
    if options[:1] == ("--numbers",):
        install("test", "bench", setup=())
        return run(BIN / "python", "-P", "docs/write_numbers.py", *options[1:])
    install("docs", extras="cli,data,dask")
    rest = [option for option in options if option != "--check"]
    sphinx = ("sphinx-build", "--fail-on-warning", "--keep-going", *rest)
    status = run(*sphinx, "-b", "html", "docs", "build/docs")
    if not status and "--check" in options:
        status = run(*sphinx, "-b", "linkcheck", "docs", "build/links")
    if not status:
        print(f"Open {ROOT / 'build' / 'docs' / 'index.html'}")
    return status


JOBS: dict[str, Callable[..., int]] = {
    "demo": demo,
    "test": tests,
    "papers": papers,
    "fuzz": fuzz,
    "smallest": smallest,
    "sanitize": sanitize,
    "coverage": coverage,
    "check": check,
    "package": package,
    "bench": bench,
    "docs": docs,
}
WITHOUT_OPTIONS = {"check", "package"}


def main() -> int:
    """Do the job that the command line names."""
    name, *options = sys.argv[1:] or [""]
    if name in {"", "-h", "--help", "help"}:
        print(__doc__)
        return 2
    if name not in JOBS:
        near = difflib.get_close_matches(name, JOBS, 1)
        question = f" (did you mean {near[0]}?)" if near else ""
        sys.exit(f"run.py: there is no job {name}{question}; use one of {', '.join(JOBS)}")
    if options and name in WITHOUT_OPTIONS:
        sys.exit(f"run.py: {name} takes no options; leave out {shlex.join(options)}")
    if needs := lacking(sysconfig.get_path("include")):
        sys.exit(advice(needs, this_system()))
    return JOBS[name](*options)


if __name__ == "__main__":
    sys.exit(main())
