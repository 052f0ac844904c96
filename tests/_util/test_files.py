"""Files appear whole or not at all."""

import ast
import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import gzkcore
from gzkcore._util.files import check_place, check_writable, remove_parts, replacing, reserve
from gzkcore.rows.files import open_table


def test_a_file_appears_when_all_of_it_is_written(tmp_path):
    path = tmp_path / "a.b.txt"
    path.write_text("before")
    with replacing(path) as beside:
        assert beside.suffix == ".txt"
        assert str(os.getpid()) in beside.name  # two processes do not write to one file
        beside.write_text("after")
        assert path.read_text() == "before"
    assert path.read_text() == "after"
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_is_left_of_what_fails(tmp_path):
    def write():
        with replacing(tmp_path / "a.txt") as beside:
            beside.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert list(tmp_path.iterdir()) == []


def write_bytes(path):
    path.write_bytes(bytes(9000))


def write_an_array(path):
    """NumPy tells only how many numbers were written."""
    with path.open("wb") as file:
        np.save(file, np.zeros(9000))


def write_a_map(path):
    np.lib.format.open_memmap(path, mode="w+", shape=(9000,))
    reserve(path)


@pytest.mark.parametrize("write", [write_bytes, write_an_array, write_a_map])
def test_the_file_is_named_that_a_disk_has_no_room_for(write, tmp_path):
    """A limit on the size of files ends a write as a full disk does."""
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, limits[1]))
    try:
        told = pytest.raises(OSError, match="; free some space, or name a file elsewhere")
        with told as caught, replacing(tmp_path / "a.npy") as beside:
            write(beside)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert caught.value.filename == str(tmp_path / "a.npy")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "url",
    ["https://a.org/b.csv", "S3://a/b.parquet", "file:///data/b.csv"],
    ids=["web", "s3", "file"],
)
@pytest.mark.parametrize("kind", [str, Path])
def test_a_url_is_told_to_be_one(url, kind):
    for use in (gzkcore.load, open_table, check_place):
        with pytest.raises(ValueError, match="is a URL; download it first") as told:
            use(kind(url))
        assert str(told.value).startswith(f"{url} ")


def test_only_its_own_parts_are_removed(tmp_path):
    names = [".run[1].7.part.gzk", ".run[1].2.7.part.gzk", ".run2.7.part.gzk", "run[1].gzk"]
    for name in names:
        (tmp_path / name).touch()
    remove_parts(tmp_path / "run[1].gzk")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names[1:])


@pytest.mark.parametrize(
    "name", ["x" * 246 + ".gzk", "é" * 125 + ".gzk", "x" * 255, "a." + "b" * 200]
)
def test_names_as_long_as_there_are(tmp_path, name):
    path = tmp_path / name
    for text in ("one", "two"):
        with replacing(path) as beside:
            assert beside.name.endswith(path.suffix)
            left = beside.with_name(beside.name.replace(str(os.getpid()), "7"))
            beside.write_text(text)
        left.touch()  # as if one of number 7 had been killed
    remove_parts(path)
    assert [each.name for each in tmp_path.iterdir()] == [name]
    assert path.read_text() == "two"


def test_names_that_are_too_long(tmp_path):
    with pytest.raises(OSError, match=r"cannot save to '.*x': the name is too long; use a shorter"):
        check_place(tmp_path / ("x" * 256))


@pytest.mark.parametrize("kind", [str, Path])
def test_a_null_byte_is_named(kind):
    """Python says "embedded null byte", and of some questions that there is no such file."""
    model, rows = gzkcore.RandomFeatureRidge(), [[0.0], [1.0]]
    for path in (kind("a\0b.gzk"), kind("a\0b/c.npy")):
        for call in (
            check_place,
            gzkcore.load,
            gzkcore.open_batches,
            lambda path: gzkcore.save(gzkcore.Gaussian(), path),
            lambda path: model.fit(rows, [0.0, 1.0], checkpoint=path),
        ):
            with pytest.raises(
                ValueError, match=r"^path='a\\x00b.* has a null byte, .*; remove it"
            ):
                call(path)


def test_places_where_nothing_can_be_written(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        check_place(tmp_path / "no" / "a.txt")
    with pytest.raises(IsADirectoryError, match="it is a folder; name a file"):
        check_place(tmp_path)
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # the superuser may write anywhere
    with pytest.raises(PermissionError, match="nothing may be written in"):
        check_place(tmp_path / "a.txt")


def test_the_place_is_named_where_no_file_can_be_made(tmp_path, monkeypatch):
    """As in /proc, where it seems possible: the other name is nothing that anybody asked for."""

    def refuse(path, *_):
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(FileNotFoundError) as told, replacing(tmp_path / "a.txt"):
        pass
    reason = (
        f"cannot save to '{tmp_path / 'a.txt'}': files cannot be written to the folder {tmp_path}; "
        "name another folder"
    )
    assert str(told.value) == reason
    with pytest.raises(FileNotFoundError) as told:
        check_writable(tmp_path / "a.txt")
    assert str(told.value) == reason


def test_a_place_is_tried_and_nothing_is_left(tmp_path):
    check_writable(tmp_path / "a.txt")
    assert not [*tmp_path.iterdir()]


def test_files_that_may_not_be_read_are_named_with_a_remedy(tmp_path, monkeypatch):
    """The superuser may read all, so that here the system is one that forbids it."""
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n")

    def forbid(self, *_, **__):
        raise PermissionError(errno.EACCES, "Permission denied", str(self))

    remedy = "you have no permission to read it, or to enter its folder; change the permissions"
    for method in ("open", "stat", "lstat"):
        with monkeypatch.context() as patch:
            patch.setattr(Path, method, forbid)
            if method == "lstat":
                with pytest.raises(
                    PermissionError, match=r"^cannot save to .*a\.csv': you have no"
                ):
                    check_place(path)
                continue
            with pytest.raises(PermissionError, match=rf"^cannot load '.*a\.csv': {remedy}"):
                gzkcore.load(path)
            with pytest.raises(PermissionError, match=rf"^cannot read '.*a\.csv': {remedy}"):
                gzkcore.open_batches(path)


def test_threads_that_save_to_one_path_leave_one_whole_file(tmp_path):
    path = tmp_path / "m.gzk"
    kernels = [gzkcore.Gaussian(gamma) for gamma in (0.5, 1.0)]
    gzkcore.save(kernels[0], path)
    errors = []

    def work(do):
        try:
            for _ in range(40):
                do()
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    jobs = [lambda kernel=kernel: gzkcore.save(kernel, path) for kernel in kernels]
    jobs += [lambda: gzkcore.load(path)] * 2
    threads = [threading.Thread(target=work, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name != "posix", reason="devices are files on POSIX only")
@pytest.mark.parametrize("name", ["/dev/full", "/dev/null"])
def test_a_device_is_never_replaced(name):
    with pytest.raises(OSError, match=f"cannot save to '{name}': it is a device or a pipe"):
        gzkcore.save(gzkcore.Gaussian(1.0), name)
    assert not Path(name).is_file()


@pytest.mark.skipif(os.name != "posix", reason="needs pipes and links")
def test_pipes_stay_and_links_are_followed(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="a device or a pipe"):
        check_place(tmp_path / "pipe")
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there" / "a.txt")
    for content in ("one", "two"):
        with replacing(tmp_path / "link") as beside:
            beside.write_text(content)
        assert (tmp_path / "there" / "a.txt").read_text() == content
        assert (tmp_path / "link").is_symlink()
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["a.txt"]


def test_a_file_keeps_who_may_read_it(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("secret")
    path.chmod(0o600)
    with replacing(path) as beside:
        beside.write_text("new")
    assert path.stat().st_mode & 0o777 == (0o600 if os.name == "posix" else 0o666)


KILLED = """
import os, sys, time
from gzkcore._util.files import replacing
from gzkcore.rows.files import open_table
with replacing(sys.argv[1]) as beside:
    beside.write_text("half")
    print(beside, flush=True)
    time.sleep(60)
"""


@pytest.mark.skipif(os.name != "posix", reason="locks tell the living from the dead on POSIX only")
def test_what_a_killed_save_left_is_removed_by_the_next(tmp_path):
    path = tmp_path / "a.txt"
    writer = subprocess.Popen([sys.executable, "-c", KILLED, path], stdout=subprocess.PIPE)
    left = writer.stdout.readline().decode().strip()

    def save():
        with replacing(path) as beside:
            beside.write_text("whole")

    save()
    assert Path(left).exists()  # its writer lives
    writer.kill()
    writer.communicate()
    save()
    assert [each.name for each in tmp_path.iterdir()] == ["a.txt"]
    assert path.read_text() == "whole"


def test_all_is_on_the_disk_before_it_is_renamed(tmp_path, monkeypatch):
    done, fsync, replace = [], os.fsync, type(tmp_path).replace
    monkeypatch.setattr(os, "fsync", lambda file: (done.append("fsync"), fsync(file)))
    monkeypatch.setattr(
        type(tmp_path), "replace", lambda *args: (done.append("rename"), replace(*args))
    )
    with replacing(tmp_path / "a.txt") as beside:
        beside.write_text("x")
    assert done[:2] == ["fsync", "rename"]


WRITERS = {"write_text", "write_bytes", "savefig", "savez", "savez_compressed", "to_csv"}
# Files that are no results, and why.
OTHER_FILES = {
    "_util/memory.py": "asks the system to forget the most memory that was in use",
    "evaluate/draw.py": "a picture of a page is written to memory",
    "evaluate/worker.py": "answers go through a pipe",
    "rows/columnar.py": "writes into the file that `replacing` gave its caller",
    "rows/files.py": "standard input is copied to a folder of its own",
}


def writes_by_itself(node):
    """Say whether a call writes a file."""
    name = getattr(node.func, "attr", getattr(node.func, "id", None))
    modes = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
    return name in WRITERS or (
        name in ("open", "fdopen") and any(isinstance(m, str) and m[:1] in "wax" for m in modes)
    )


def within_replacing(tree):
    """Return the calls that are made in a block of `replacing`, or are given what it gives."""
    found = set()
    for block in ast.walk(tree):
        if isinstance(block, ast.With) and "replacing(" in ast.unparse(block.items[0]):
            found |= {node for node in ast.walk(block) if isinstance(node, ast.Call)}
    return found


def test_every_file_is_written_by_one_function():
    package = Path(gzkcore.__file__).parent
    found = {}
    for path in package.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        calls = {node for node in ast.walk(tree) if isinstance(node, ast.Call)}
        wrong = [node.lineno for node in calls - within_replacing(tree) if writes_by_itself(node)]
        if wrong:
            found[path.relative_to(package).as_posix()] = wrong
    assert found.keys() == OTHER_FILES.keys(), found


def test_what_is_no_path_is_told():
    for call in (
        lambda: gzkcore.load(None),
        lambda: gzkcore.load(b"a"),
        lambda: gzkcore.save("a.gzk", gzkcore.Gaussian()),
    ):
        with pytest.raises(TypeError, match=r"path is of type \w+, but must be the name of a file"):
            call()
