"""The server process: when it cannot start, and when it must not be forked from."""

from __future__ import annotations

import logging
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ddpdoctor.launch import ForkServer, Job, LaunchError, server
from tests.launch.helpers import BODIES, Family, run
from tests.patience import ENDLESS


@pytest.mark.parametrize(
    ("torch", "complaint"),
    [
        ("raise ImportError(\"No module named 'torch'\")", "pip install 'ddpdoctor\\[torch\\]'"),
        ("import sys; sys.exit('torch refuses')", "torch refuses"),
        ("raise ValueError('\\nbad TORCH_LOGS\\nas, these')", "ValueError: bad TORCH_LOGS; .* env"),
    ],
)
def test_a_torch_that_cannot_be_imported_is_told_in_one_line(
    family: Family, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, torch: str, complaint: str
) -> None:
    (tmp_path / "torch.py").write_text(torch)
    monkeypatch.syspath_prepend(str(tmp_path))
    with ForkServer() as server, pytest.raises(LaunchError, match=complaint) as refusal:
        server.launch(Job(f"{BODIES}:tell", 1, server.fresh_run_dir()))
    assert "\n" not in str(refusal.value)


KILLED = "import os; os.kill(os.getpid(), 9)"


@pytest.mark.thorough
def test_a_server_that_is_killed_as_it_starts_is_replaced(
    family: Family, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = tmp_path / "torch.py"
    once.write_text(f"import pathlib; pathlib.Path({str(once)!r}).unlink(); {KILLED}")
    monkeypatch.syspath_prepend(str(tmp_path))
    with ForkServer() as server:
        with server.launch(Job(f"{BODIES}:meet_twice", 2, server.fresh_run_dir())) as world:
            assert run(world).results == {0: [2, 2], 1: [2, 2]}
        assert not once.exists()


def test_a_server_that_is_killed_whenever_it_starts_is_told_as_killed(
    family: Family, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torch.py").write_text(KILLED)
    monkeypatch.syspath_prepend(str(tmp_path))
    with ForkServer() as server, pytest.raises(LaunchError, match="ended by SIGKILL before it was"):
        server.launch(Job(f"{BODIES}:tell", 1, server.fresh_run_dir()))


def test_why_a_server_has_ended_is_told_though_its_folder_went_first(
    family: Family, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torch.py").write_text("import sys; sys.exit('torch refuses')")
    monkeypatch.syspath_prepend(str(tmp_path))
    make = Path.mkdir

    def too_late(folder: Path, *args: object, **kwargs: object) -> None:
        shutil.rmtree(folder.parent)
        make(folder, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "mkdir", too_late)
    with ForkServer() as server, pytest.raises(LaunchError, match="torch refuses"):
        server.fresh_run_dir()


def test_why_a_server_has_ended_is_told_though_the_folder_of_the_run_went_first(
    family: Family, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torch.py").write_text("import sys; sys.exit('torch refuses')")
    monkeypatch.syspath_prepend(str(tmp_path))

    def launch(server: ForkServer) -> None:
        folder = server.fresh_run_dir()  # or here already: the server takes its folder with it
        shutil.rmtree(folder, ignore_errors=True)
        server.launch(Job(f"{BODIES}:tell", 1, folder))

    with ForkServer() as server, pytest.raises(LaunchError, match="torch refuses"):
        launch(server)


def test_a_server_with_a_second_thread_is_not_forked_from(
    family: Family,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    thread = "import threading, time; threading.Thread(target=time.sleep, args=(600,), daemon=True)"
    (tmp_path / "starts_a_thread.py").write_text(f"{thread}.start()")
    monkeypatch.syspath_prepend(str(tmp_path))
    with ForkServer(preload=["starts_a_thread"]) as server:
        with server.launch(Job(f"{BODIES}:meet_twice", 2, server.fresh_run_dir())) as world:
            assert run(world).results == {0: [2, 2], 1: [2, 2]}
        assert server.cold == "importing torch left 2 threads running"
    assert "fresh interpreters instead of forks" in caplog.text


def test_a_server_that_nobody_needed_is_never_started(
    family: Family, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with ForkServer():
        assert family.members() == []


def test_a_closed_server_leaves_no_folder(family: Family) -> None:
    with ForkServer() as server:
        folder = server.fresh_run_dir()
        assert folder.is_dir()
    assert not folder.parent.exists()


def test_a_folder_goes_though_a_rank_that_is_ending_still_writes_there(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    many = "import pathlib, sys\nfor n in range(10_000): pathlib.Path(sys.argv[1], str(n)).touch()"
    writer = subprocess.Popen([sys.executable, "-c", many, home], stderr=subprocess.DEVNULL)
    try:
        while not any(home.iterdir()):
            assert writer.poll() is None
        server._remove(home, time.monotonic() + 60)
    finally:
        writer.kill()
        writer.wait()
    assert not home.exists()


@pytest.mark.thorough
def test_a_server_that_can_fork_no_more_takes_its_folder_with_it(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom ddpdoctor.launch import server\n"
        "def fork(*_):\n    raise BlockingIOError(11, 'no more')\n"
        "server._fork_keeper = fork\nsys.argv = ['server', sys.argv[1], '']\nserver.main()\n"
    )
    ours, theirs = socket.socketpair()
    with ours, theirs:
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(theirs.fileno())],
            env={**os.environ, "TMPDIR": str(tmp_path)},
            pass_fds=[theirs.fileno()],
            stderr=subprocess.PIPE,
        )
        socket.send_fds(ours, [b"w"], [theirs.fileno()])
        _, said = process.communicate(timeout=ENDLESS)
    assert (process.returncode, b"no more" in said) == (0, True), said
    assert [*tmp_path.glob("ddpdoctor-*")] == []
