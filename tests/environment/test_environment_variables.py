"""The table of variables, and which names resemble which."""

import re
from importlib.util import find_spec
from mmap import ACCESS_READ, mmap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddpdoctor.environment.variables import known, nearest
from ddpdoctor.environment.variables.table import NCCL_GROUP


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


FAMILIES = (
    "TORCH_NCCL|TORCH_FR|TORCH_GLOO|TORCH_DIST|TORCH_DISTRIBUTED|TORCHELASTIC|TORCH_ELASTIC|"
    "TORCH_SYMM_MEM|TORCH_SYMMMEM|NCCL|GLOO"
)
# A string of its own in the data of a library, a literal of C++, and a literal of Python.
IN_BINARY = re.compile(rb"\0((?:%b)_[A-Z0-9_]+)(?=\0)" % FAMILIES.encode())
IN_HEADER = re.compile(rf'"((?:{FAMILIES})_[A-Z0-9_]+)"')
IN_PYTHON = re.compile(
    rf"""["']((?:{FAMILIES})_[A-Z0-9_]+)["']"""
    r"""|(?:environ(?:\.get|\.pop|\.setdefault)?\s*[\[(]|getenv\()\s*["']([A-Z][A-Z0-9_]+)["']"""
)
READERS = ("PyTorch", NCCL_GROUP, "gloo", "torchrun", "env:// rendezvous")
# Of what needs GPUs, which builds for CPUs leave out.
ONLY_WITH_CUDA = {
    *("TORCH_NCCL_DEBUG_INFO_PIPE_FILE", "TORCH_NCCL_NONBLOCKING_TIMEOUT"),
    *("TORCH_NCCL_USE_COMM_NONBLOCKING", "TORCH_SYMM_MEM_ALLOW_OVERLAPPING_DEVICES"),
}
# Of gloo with TLS, which the wheels leave out, all or none.
OF_TLS = {
    f"GLOO_DEVICE_TRANSPORT_TCP_TLS_{name}" for name in ("PKEY", "CERT", "CA_FILE", "CA_PATH")
}
# Of libtorch_cuda: values of an enum, and a macro.
NO_VARIABLES_OF_TORCH = {
    *(f"NCCL_CTA_POLICY_{name}" for name in ("DEFAULT", "EFFICIENCY", "ZERO")),
    "NCCL_CHECK_TIMEOUT",
}


def _libraries(folder: Path) -> list[Path]:
    return [*folder.glob("lib/libtorch*.so*"), *folder.glob("lib/libc10*.so*")]


def _in_libraries(folder: Path, pattern: re.Pattern[bytes]) -> set[str]:
    found = set()
    for library in _libraries(folder):
        with library.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
            found |= {match[1].decode() for match in pattern.finditer(content)}
    return found


def _in_sources(folder: Path, pattern: re.Pattern[str], glob: str) -> set[str]:
    texts = (path.read_text(encoding="utf-8") for path in folder.glob(glob))
    return {name for text in texts for match in pattern.finditer(text) for name in match.groups()}


def test_the_table_has_every_variable_that_the_installed_torch_reads() -> None:
    folder = _torch_folder()
    found = {
        "libraries": _in_libraries(folder, IN_BINARY) - NO_VARIABLES_OF_TORCH,
        "headers": _in_sources(folder, IN_HEADER, "include/torch/csrc/distributed/**/*.h*"),
        "Python": _in_sources(folder, IN_PYTHON, "distributed/**/*.py") - {None},
    }
    assert all(len(names) > 20 for names in found.values())
    new = {where: sorted(names - known().keys()) for where, names in found.items()}
    assert new == {"libraries": [], "headers": [], "Python": []}


@pytest.mark.thorough
def test_the_table_has_no_variable_that_the_installed_torch_has_dropped() -> None:
    folder = _torch_folder()
    with_cuda = any("cuda" in library.name for library in _libraries(folder))
    table = {
        name: row.status in ("removed", "phantom")
        for name, row in known().items()
        # Its own options torchrun knows by other names: they have a test of their own.
        if row.read_by in (*READERS, "nothing") and not name.startswith("PET_")
    }
    quoted = re.compile(r"""["']([A-Z][A-Z0-9_]+)["']""")
    read = {
        *_in_libraries(folder, re.compile(rb"\0([A-Z][A-Z0-9_]+)(?=\0)")),
        *_in_sources(folder, quoted, "distributed/**/*.py"),
        *_in_sources(folder, IN_HEADER, "include/torch/csrc/distributed/**/*.h*"),
    }
    # DistributedDataParallel prints names that nobody reads any more: they count as named alone.
    named = read | _in_sources(folder, quoted, "**/*.py")
    dropped = {name for name, gone in table.items() if not gone} - named
    assert dropped - OF_TLS == (set() if with_cuda else ONLY_WITH_CUDA)
    assert dropped & OF_TLS in (set(), OF_TLS)
    assert sorted({name for name, gone in table.items() if gone} & read) == []


# Strings of libnccl that are no variables: names of subsystems, levels, kinds and of its own enums.
NO_VARIABLES = re.compile(
    "NCCL_(?:ALL|ALLOC|BOOTSTRAP|CALL|COLL|ENV|GRAPH|INIT|NVLS|P2P|PROXY|RAS|REG|SHM|TUNING|PROFILE|SIGNAL"
    "|SIGNAL_NONE|IB_(?:SL|TC)_DEFAULT|(?:LOG|IPC|GIN_CONNECTION|GIN_TYPE|NET_DEVICE)_[A-Z_]+"
    "|GIN_IB_[A-Z]+_TAG)"
)


def test_the_table_has_every_variable_that_the_installed_nccl_reads_and_no_other() -> None:
    spec = find_spec("nvidia")
    places = [Path(one) for one in spec.submodule_search_locations or ()] if spec else []
    library = next((one for at in places for one in at.glob("nccl/lib/libnccl.so*")), None)
    if library is None:
        pytest.skip("NCCL is not installed")
    with library.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        found = {one[1].decode() for one in re.finditer(rb"\0(NCCL_[A-Z0-9_]+)(?=\0)", content)}
        read = {name: row for name, row in known().items() if name.startswith("NCCL_")}
        dropped = {
            name
            for name, row in read.items()
            # What another string ends with is stored once, so that no zero need be before it.
            if row.read_by == "NCCL" and content.find(b"%b\0" % name.encode()) < 0
        }
    new = {name for name in found - read.keys() if not NO_VARIABLES.fullmatch(name)}
    assert (sorted(new), sorted(dropped)) == ([], [])
    gone = {name for name, row in read.items() if row.status in ("removed", "phantom")}
    assert sorted(gone & found) == []


def test_the_default_timeouts_that_we_state_are_those_of_the_installed_torch() -> None:
    headers = _torch_folder() / "include/torch/csrc/distributed/c10d"
    nccl = (headers / "ProcessGroupNCCL.hpp").read_text()
    default = re.search(r"kProcessGroupNCCLDefaultTimeout =\s+\S+milliseconds\((.+?)\)", nccl)
    assert default
    assert default[1] == "10 * 60 * 1000"
