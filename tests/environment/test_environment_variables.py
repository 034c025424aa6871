"""The table of variables, and which names resemble which."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddpdoctor.environment.variables import known, nearest


def test_no_name_stands_in_the_table_twice() -> None:
    from ddpdoctor.environment.variables import launch, nccl, pytorch

    rows = (*launch.VARIABLES, *pytorch.VARIABLES, *nccl.VARIABLES)
    assert len(rows) == len(known())


def test_an_old_name_points_to_a_name_that_is_read() -> None:
    old = [row for row in known().values() if row.status == "legacy"]
    assert old
    assert {known()[row.instead].status for row in old} <= {"known", "debug"}


def test_a_row_with_choices_says_what_becomes_of_other_values() -> None:
    wanting = [row for row in known().values() if "choice" in row.kind]
    assert wanting
    assert all(row.choices and row.misread for row in wanting)


@pytest.mark.parametrize(
    ("typo", "meant"),
    [
        ("NCCL_SOKET_IFNAME", "NCCL_SOCKET_IFNAME"),
        ("NCCL_SOCKET_IFNAMES", "NCCL_SOCKET_IFNAME"),
        ("GLOO_SOCKET_INFAME", "GLOO_SOCKET_IFNAME"),
        ("TORCH_DISTRIBUTED_DEBG", "TORCH_DISTRIBUTED_DEBUG"),
        ("OMP_NUM_THREAD", "OMP_NUM_THREADS"),
        ("CUDA_VISIBLE_DEVICE", "CUDA_VISIBLE_DEVICES"),
        ("MASTERPORT", "MASTER_PORT"),
        ("NCCL_DEBGU", "NCCL_DEBUG"),
        ("NCCL_SOKET_IFNAM", "NCCL_SOCKET_IFNAME"),
    ],
)
def test_a_misspelt_name_finds_its_variable(typo: str, meant: str) -> None:
    assert nearest(typo) == meant


@pytest.mark.parametrize(
    "name",
    # Real variables of other programs, all near to one of ours.
    ["LOG_LEVEL", "LOGLEVEL", "RANK", "BANK", "MASTER_HOST", "PYTHONEXEC", "NCCL_MAX_NCHANNELS"],
)
def test_an_ordinary_or_a_known_name_is_no_typo(name: str) -> None:
    assert nearest(name) is None


@given(st.sampled_from(sorted(known())), st.data())
def test_a_name_that_has_lost_a_letter_is_never_taken_for_something_far(
    name: str, data: st.DataObject
) -> None:
    position = data.draw(st.integers(0, len(name) - 1))
    typo = name[:position] + name[position + 1 :]
    meant = nearest(typo)
    assert meant is None or abs(len(meant) - len(typo)) <= 2


def _torch_folder() -> Path:
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        pytest.skip("torch is not installed")
    return Path(spec.origin).parent


def test_the_table_has_every_variable_that_the_installed_torch_declares() -> None:
    headers = _torch_folder().glob("include/torch/csrc/distributed/c10d/*.hpp")
    text = "".join(header.read_text() for header in headers)
    declared = set(re.findall(r'"((?:TORCH_NCCL|TORCH_FR|TORCH_GLOO|NCCL)_[A-Z0-9_]+)"', text))
    assert len(declared) > 20
    assert declared <= known().keys()


def test_the_default_timeouts_that_we_state_are_those_of_the_installed_torch() -> None:
    headers = _torch_folder() / "include/torch/csrc/distributed/c10d"
    nccl = (headers / "ProcessGroupNCCL.hpp").read_text()
    default = re.search(r"kProcessGroupNCCLDefaultTimeout =\s+\S+milliseconds\((.+?)\)", nccl)
    assert default
    assert default[1] == "10 * 60 * 1000"
