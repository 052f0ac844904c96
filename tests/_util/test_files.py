"""Files appear whole or not at all."""

import os

import pytest

from gzkcore._util.files import check_place, remove_parts, replacing


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


def test_only_its_own_parts_are_removed(tmp_path):
    names = [".run[1].7.part.gzk", ".run[1].2.7.part.gzk", ".run2.7.part.gzk", "run[1].gzk"]
    for name in names:
        (tmp_path / name).touch()
    remove_parts(tmp_path / "run[1].gzk")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names[1:])


def test_places_where_nothing_can_be_written(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        check_place(tmp_path / "no" / "a.txt")
    with pytest.raises(IsADirectoryError, match="it is a folder; name a file"):
        check_place(tmp_path)
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # the superuser may write anywhere
    with pytest.raises(PermissionError, match="nothing may be written in"):
        check_place(tmp_path / "a.txt")
