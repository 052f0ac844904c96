"""Files of models: bytes that were flipped, cut, and signed again; fields that were changed, many at once."""

import hostile
import models
import numpy as np
import pytest
import resign
from fuzzing import counted, often
from hypothesis import given
from hypothesis import strategies as st

import gzkcore

NAMES = sorted(path.stem for path in models.FOLDER.glob("*.gzk"))
SAID = hostile.ask()


def refuses(path, content):
    path.write_bytes(content)
    try:
        gzkcore.load(path)
    except ValueError as error:
        assert str(path) in str(error)
        return True
    return False


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    for name in NAMES:
        gzkcore.load(models.FOLDER / f"{name}.gzk")  # imports its modules
    return tmp_path_factory.mktemp("fuzz") / "m.gzk"


@pytest.mark.parametrize("name", NAMES)
@often
@given(data=st.data())
def test_damaged_files_are_refused(path, name, data):
    content = bytearray((models.FOLDER / f"{name}.gzk").read_bytes())
    counted("damaged files", name)
    match data.draw(st.sampled_from(["flip", "cut", "longer", "swap"])):
        case "flip":
            for _ in range(data.draw(st.integers(1, 8))):
                content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(
                    st.integers(1, 255)
                )
            if content == (models.FOLDER / f"{name}.gzk").read_bytes():
                return
        case "cut":
            del content[data.draw(st.integers(0, len(content) - 1)) :]
        case "longer":
            content += data.draw(st.binary(min_size=1, max_size=100))
        case "swap":
            at = data.draw(st.integers(1, len(content) - 1))
            if content[at:] + content[:at] == content:
                return
            content = content[at:] + content[:at]
    assert refuses(path, bytes(content))


@pytest.mark.parametrize("name", NAMES)
@often
@given(data=st.data())
def test_damaged_files_with_a_right_checksum(path, name, data):
    content = bytearray((models.FOLDER / f"{name}.gzk").read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 65))] ^= data.draw(st.integers(1, 255))
    counted("damaged files that were signed", name)
    answer(path, name, resign.resigned(bytes(content)))


@pytest.mark.parametrize("name", NAMES)
@often
@given(data=st.data())
def test_changed_fields(path, name, data):
    content = (models.FOLDER / f"{name}.gzk").read_bytes()
    for _ in range(data.draw(st.integers(1, 3))):
        paths = resign.paths(content)
        at = data.draw(st.sampled_from(paths))
        changes = resign.changes(content, at)
        what = data.draw(st.sampled_from(sorted(changes)))
        counted("changed fields that were signed", (name, at, what))
        content = changes[what]()
    answer(path, name, content)


def answer(path, name, content):
    with np.load(models.FOLDER / f"{name}.npz") as saved:
        hostile.attempt(content, path, SAID[name], saved["X"])
