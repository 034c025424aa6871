"""The pytest plugin: tests whose body runs on several ranks.

    @pytest.mark.distributed(nproc=2, backend="gloo", timeout=30)
    def test_ranks_agree():
        total = torch.ones(())
        dist.all_reduce(total)
        assert total == 2

The test is launched on `nproc` ranks (`ddpdoctor.launch`), each of which collects and runs it again
in a pytest session of its own; this process runs none of its fixtures. See `distributed` and
`multigpu` under `pytest --markers`.

Every pytest run of everyone who has ddpdoctor installed imports this file, so it imports nothing
but pytest; the rest comes with the first test that needs it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

_MARKERS = (
    'distributed(nproc=2, backend="gloo", timeout=30, watch=True): run the test on nproc ranks, '
    "each with its own fixtures. A list as nproc runs it once for each number. The default process "
    "group exists when the fixtures are set up (backend=None: the test makes its own), and need "
    "not be destroyed. The test fails if any rank does, or if one still runs after timeout "
    "seconds, or once a deadlock is proven, or if their replicas are proven to have parted, for "
    "which ranks are watched (watch=False: not, for tests that do so on purpose, or count what a "
    "process does). A debugger and coverage do not reach the ranks.",
    'multigpu(n=2, backend="nccl", timeout=30, watch=True): run the test on n ranks with a GPU '
    "each, as distributed does; skipped where there are fewer. GPUs are leased, so that the "
    "workers of pytest-xdist do not share them.",
)

SHARED_PATH = pytest.StashKey[Path]()
"""In a rank: the folder of all ranks."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --require-multigpu and --force-ranks."""
    group = parser.getgroup("ddpdoctor")
    group.addoption(
        "--require-multigpu",
        action="store_true",
        help="fail if no multigpu test was executed: none was selected, or all were skipped",
    )
    group.addoption(
        "--force-ranks",
        action="store_true",
        help="start the ranks of a test even if they do not seem to fit on this machine",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Explain the markers; heed the option."""
    for line in _MARKERS:
        config.addinivalue_line("markers", line)
    is_xdist_worker = hasattr(config, "workerinput")
    if config.getoption("--require-multigpu") and not is_xdist_worker:
        from ddpdoctor.pytest_plugin.requirement import MultigpuRequirement

        config.pluginmanager.register(MultigpuRequirement())


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test once for each number of ranks, where its marker gives several."""
    mark = metafunc.definition.get_closest_marker("distributed")
    numbers = mark.kwargs.get("nproc", mark.args[0] if mark.args else None) if mark else None
    if isinstance(numbers, list | tuple):
        metafunc.fixturenames.append("_nproc")
        metafunc.parametrize("_nproc", numbers, ids=[f"nproc{number}" for number in numbers])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> None:
    """Have a marked test run on ranks, unless this is one of them."""
    in_rank = SHARED_PATH in item.config.stash
    marked = item.get_closest_marker("distributed") or item.get_closest_marker("multigpu")
    if marked and not in_rank:
        from ddpdoctor.pytest_plugin.distributed import take_over

        take_over(item)


@pytest.fixture
def shared_path(request: pytest.FixtureRequest) -> Path:
    """One empty folder for all ranks of a test; tmp_path is each rank's own."""
    in_rank = SHARED_PATH in request.config.stash
    path: Path = (
        request.config.stash[SHARED_PATH] if in_rank else request.getfixturevalue("tmp_path")
    )
    return path
