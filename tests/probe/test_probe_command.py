"""`ddpdoctor probe` on ranks that really run: values, links, lost ranks, and bad input."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from ddpdoctor import cli
from ddpdoctor.launch import World
from ddpdoctor.probe import ProbeReport, local

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
COMMAND = [sys.executable, "-m", "ddpdoctor", "probe", "--format", "json", "--seconds"]


def environ(**more: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return {**kept, "OMP_NUM_THREADS": "1", **more}


@pytest.fixture(scope="module")
def report() -> ProbeReport:
    """A probe of three ranks on this machine."""
    ran = subprocess.run(
        [*COMMAND, "2", "--nproc", "3"], capture_output=True, text=True, timeout=300, env=environ()
    )
    assert ran.returncode in (0, 1), ran.stderr
    return ProbeReport.model_validate_json(ran.stdout)


def test_every_collective_gives_right_values_in_every_type(report: ProbeReport) -> None:
    assert report.measured
    states = {(check.operation, check.dtype): check.state for check in report.measured.checks}
    assert len(states) == 11 * 7 + 1
    assert set(states.values()) == {"right"}


def test_every_pair_of_ranks_has_a_link(report: ProbeReport) -> None:
    assert report.measured
    assert [(one.first, one.second) for one in report.measured.links] == [(0, 1), (0, 2), (1, 2)]
    assert all(one.bandwidth > 0 and one.latency > 0 for one in report.measured.links)


def test_bandwidths_are_those_of_nccl_tests(report: ProbeReport) -> None:
    assert report.measured
    factor = {"all_reduce": 4 / 3, "all_gather": 2 / 3, "broadcast": 1.0}
    for point in report.measured.points:
        assert point.algorithm_bandwidth == pytest.approx(point.size / point.seconds)
        assert point.bus_bandwidth == pytest.approx(
            point.algorithm_bandwidth * factor[point.operation]
        )


def test_a_report_is_comparable_with_itself(
    report: ProbeReport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "old.json"
    old.write_text(report.model_dump_json())
    monkeypatch.setattr("ddpdoctor.probe.cli._perform", lambda *_: (report.measured, []))
    assert cli.run(["probe", "--against", str(old), "-o", str(tmp_path / "new.json")]) in (0, 1)


def test_a_rank_that_is_killed_is_named_with_the_signal_and_what_it_did(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    follow = local._follow

    def and_kill(world: World, folder: Path, *rest: Any) -> None:
        def kill() -> None:
            while not (folder / "rank-1.stage").exists():
                time.sleep(0.05)
            os.kill(world.ranks[1].pid, signal.SIGKILL)

        world.ranks  # noqa: B018 : all are started
        killer = threading.Thread(target=kill)
        killer.start()
        try:
            follow(world, folder, *rest)
        finally:
            killer.join()

    monkeypatch.setattr(local, "_follow", and_kill)
    assert cli.run(["probe", "--nproc", "3", "--seconds", "60", "--format", "json"]) == 1
    (found,) = json.loads(capsys.readouterr().out)["findings"]
    assert (found["code"], found["certainty"], found["ranks"]) == ("DDP723", "proven", [1])
    assert "rank 1 was ended by SIGKILL" in found["cause"]


@pytest.fixture
def three_hosts() -> object:
    """Three network namespaces on one bridge; the way to the third carries 8 MB a second."""
    if os.geteuid() != 0 or not shutil.which("ip") or not shutil.which("tc"):
        pytest.skip("needs root, ip and tc")
    name = f"dd{os.getpid() % 10000}"
    hosts = [f"{name}h{number}" for number in range(3)]
    commands = [f"ip link add {name} type bridge", f"ip link set {name} up"]
    for number, host in enumerate(hosts):
        commands += [
            f"ip netns add {host}",
            f"ip link add {name}v{number} type veth peer name eth0 netns {host}",
            f"ip link set {name}v{number} master {name} up",
            f"ip -n {host} link set lo up",
            f"ip -n {host} link set eth0 up",
            f"ip -n {host} addr add 10.77.9.{number + 1}/24 dev eth0",
        ]
    commands.append(
        f"ip netns exec {hosts[2]} tc qdisc add dev eth0 root tbf "
        "rate 64mbit burst 64k latency 50ms"
    )
    made = []
    try:
        for command in commands:
            ran = subprocess.run(command.split(), capture_output=True, text=True)
            if ran.returncode:
                pytest.skip(f"{command}: {ran.stderr.strip()}")
            made.append(command)
        yield hosts
    finally:
        for host in hosts:
            subprocess.run(["ip", "netns", "del", host], capture_output=True)
        subprocess.run(["ip", "link", "del", name], capture_output=True)


def test_the_host_behind_a_throttled_link_is_named(three_hosts: list[str]) -> None:
    ranks = [
        subprocess.Popen(
            ["ip", "netns", "exec", host, *COMMAND, "6"],
            stdout=subprocess.PIPE,
            env=environ(
                RANK=str(rank),
                WORLD_SIZE="3",
                LOCAL_RANK="0",
                MASTER_ADDR="10.77.9.1",
                MASTER_PORT="29544",
                GLOO_SOCKET_IFNAME="eth0",
            ),
            text=True,
        )
        for rank, host in enumerate(three_hosts)
    ]
    try:
        said = [rank.communicate(timeout=240)[0] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    assert said[1:] == ["", ""]  # rank 0 alone tells
    report = ProbeReport.model_validate_json(said[0])
    assert ("DDP721", (2,)) in [(one.code, one.ranks) for one in report.findings]
    assert not [one for one in report.findings if one.code == "DDP721" and one.ranks != (2,)]


def test_pictures_show_every_pair_and_no_text_of_ours_is_markup(
    report: ProbeReport, tmp_path: Path
) -> None:
    from ddpdoctor.report import probe as pages

    measured = report.measured
    assert measured
    hostile = "<script>alert(1)</script>"
    ranks = tuple(one.model_copy(update={"host": hostile}) for one in measured.ranks)
    page = pages.as_html(
        report.model_copy(update={"measured": measured.model_copy(update={"ranks": ranks})})
    )
    assert "<script" not in page
    assert page.count("<rect") == 2 * len(measured.links) + len(ranks)
    pytest.importorskip("matplotlib")
    pages.write_png(report, tmp_path / "probe.png")
    assert (tmp_path / "probe.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--nproc", "0"], "--nproc"),
        (["--seconds", "0"], "--seconds"),
        (["--backend", "mpi"], "--backend"),
        (["--against", "nowhere.json"], "nowhere.json"),
        (["--format", "png"], "-o FILE"),
        (["-o", "missing/folder/x.json"], "missing"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["probe", *arguments]) == 2
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1
    assert word in said


def test_under_a_launcher_the_number_of_ranks_is_not_ours_to_say(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert cli.run(["probe", "--nproc", "4"]) == 2
    assert "no --nproc" in capsys.readouterr().err
