"""`ddpdoctor probe` on ranks that really run: values, links, lost ranks, and bad input."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.distributed as dist
from launched import Launcher

from ddpdoctor import cli
from ddpdoctor.evidence import Fate
from ddpdoctor.launch import ForkServer, Rank, WorkerGroup
from ddpdoctor.probe import local, meeting, telling
from ddpdoctor.probe import rank as probing
from ddpdoctor.probe.model import ProbeReport
from ddpdoctor.probe.progress import STAGES, read
from ddpdoctor.report.model import Report, render
from tests.ports import free_port
from tests.thorough import first_of, one_in

COMMAND = [sys.executable, "-m", "ddpdoctor", "probe", "--format", "json", "--seconds"]
QUICK = ["--format", "json", "--seconds", "2"]
THROTTLED = 25_000_000
IMPATIENT = [*QUICK, "--patience", "5"]


def port() -> str:
    return str(free_port())


def of_hosts() -> dict[str, str]:
    return {"MASTER_ADDR": "10.77.9.1", "MASTER_PORT": port(), "GLOO_SOCKET_IFNAME": "eth0"}


def environ(**more: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return {**kept, "OMP_NUM_THREADS": "1", **more}


def report_in(text: str) -> ProbeReport:
    told = Report.model_validate_json(text)
    return ProbeReport.model_validate({**told.data, "findings": told.findings})


@pytest.fixture(scope="module")
def report() -> ProbeReport:
    """A probe of three ranks on this machine."""
    ran = subprocess.run(
        [*COMMAND, "2", "--nproc", "3"], capture_output=True, text=True, timeout=300, env=environ()
    )
    assert ran.returncode in (0, 1), ran.stderr
    return report_in(ran.stdout)


def test_every_collective_gives_right_values_in_every_type(report: ProbeReport) -> None:
    assert report.measured
    states = {(check.operation, check.dtype): check.state for check in report.measured.checks}
    assert len(states) == 15 * 7
    refused = {operation for (operation, _), state in states.items() if state == "unsupported"}
    assert refused <= {"all_to_all"}  # gloo has none with lists
    assert set(states.values()) <= {"right", "unsupported"}


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


def test_what_the_probe_itself_adds_is_told(report: ProbeReport) -> None:
    assert report.measured
    assert report.measured.overhead > 0
    assert any("the probe's own" in note for note in telling.told(report).notes)


def test_a_report_is_comparable_with_itself(
    report: ProbeReport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "old.json"
    old.write_text(render(telling.told(report), "json"))
    monkeypatch.setattr("ddpdoctor.probe.cli._perform", lambda *_: (report.measured, []))
    assert cli.run(["probe", "--against", str(old), "-o", str(tmp_path / "new.json")]) in (0, 1)


@pytest.mark.parametrize(("gone", "left"), [(1.0, 20.0), (12.0, 14.0), (60.0, 5.0)])
def test_a_slow_start_is_made_up_for_by_measuring_less(gone: float, left: float) -> None:
    assert probing._left(20.0, time.time() - gone) == pytest.approx(left, abs=0.5)


def meanwhile(act: Callable[[WorkerGroup, Path], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets something happen to a rank while a local probe runs."""
    follow = local._follow

    def and_act(world: WorkerGroup, folder: Path, *rest: Any) -> None:
        world.ranks  # noqa: B018 : all are started
        actor = threading.Thread(target=act, args=(world, folder))
        actor.start()
        try:
            follow(world, folder, *rest)
        finally:
            actor.join()

    monkeypatch.setattr(local, "_follow", and_act)


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    """One that has torch, for all probes of this module."""
    with ForkServer(preload=["ddpdoctor.cli", "ddpdoctor.probe.rank"]) as server:
        yield server


@pytest.fixture
def warm(server: ForkServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Local probes have no server of their own."""
    monkeypatch.setattr(local, "ForkServer", lambda: nullcontext(server))


@pytest.fixture
def launcher(server: ForkServer) -> Iterator[Launcher]:
    launcher = Launcher(server)
    yield launcher
    launcher.close()


@pytest.mark.thorough
@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize("phase", first_of(STAGES[-2::-1]))
def test_a_rank_that_is_killed_is_named_with_the_signal_and_what_it_did(
    phase: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def kill(world: WorkerGroup, folder: Path) -> None:
        while not world.ended and read(folder / "rank-1.stage")[0] != phase:
            time.sleep(0.01)
        os.kill(world.ranks[1].pid, signal.SIGKILL)

    meanwhile(kill, monkeypatch)
    assert cli.run(["probe", "--nproc", "3", "--seconds", "2", "--format", "json"]) == 1
    (found,) = json.loads(capsys.readouterr().out)["findings"]
    assert (found["code"], found["certainty"], found["ranks"]) == ("DDP723", "proven", [1])
    assert f"rank 1 was ended by SIGKILL, while {phase}" in found["cause"]


def test_of_ranks_that_waited_for_one_that_is_stopped_that_one_is_named(tmp_path: Path) -> None:
    def said(rank: int, name: str) -> Path:
        (tmp_path / name).write_text("PeerLost: rank 1 said nothing more")
        return tmp_path / name

    with subprocess.Popen(["sleep", "60"]) as process:
        ranks = [
            Rank(number, pid, tmp_path, tmp_path)
            for number, pid in ((0, os.getpid()), (1, process.pid))
        ]
        world: Any = SimpleNamespace(ranks=ranks, job=SimpleNamespace(rank_file=said))
        gave_up = Fate(rank=0, pid=0, exit_code=1, signal=None, time=0.0)
        before = local._lost(gave_up, tmp_path, world)
        process.send_signal(signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)
        after = local._lost(gave_up, tmp_path, world)
        process.kill()
    assert (before.rank, after.rank) == (0, 1)
    assert str(after) == "rank 1 is stopped, as by SIGSTOP, while joining"


@pytest.mark.usefixtures("warm")
def test_a_password_in_what_a_rank_was_told_is_in_no_report(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "http://ada:s3cr3t-Zq9@proxy")
    assert cli.run(["probe", "--nproc", "2", *QUICK]) == 1
    said = capfd.readouterr()
    (found,) = json.loads(said.out)["findings"]
    assert "***@proxy" in found["cause"]
    assert "s3cr3t" not in said.out + said.err


@pytest.fixture(scope="module")
def three_hosts() -> Iterator[list[str]]:
    """Three network namespaces on one bridge."""
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
    try:
        for command in commands:
            ran = subprocess.run(command.split(), capture_output=True, text=True)
            if ran.returncode:
                pytest.skip(f"{command}: {ran.stderr.strip()}")
        yield hosts
    finally:
        for host in hosts:
            subprocess.run(["ip", "netns", "del", host], capture_output=True)
        subprocess.run(["ip", "link", "del", name], capture_output=True)


@pytest.fixture
def throttle(three_hosts: list[str]) -> Iterator[Callable[[int, int | None], None]]:
    """Lets a host send `THROTTLED` bytes a second, to all others or to one."""

    def begin(host: int, to: int | None) -> None:
        where = "0.0.0.0/0" if to is None else f"10.77.9.{to + 1}"
        for rest in (
            "qdisc add dev eth0 root handle 1: htb",
            f"class add dev eth0 parent 1: classid 1:3 htb rate {8 * THROTTLED}bit burst 64k",
            f"filter add dev eth0 parent 1: protocol ip u32 match ip dst {where} flowid 1:3",
        ):
            command = f"ip netns exec {three_hosts[host]} tc {rest}"
            ran = subprocess.run(command.split(), capture_output=True, text=True)
            if ran.returncode:
                pytest.skip(f"{command}: {ran.stderr.strip()}")

    yield begin
    for host in three_hosts:
        command = f"ip netns exec {host} tc qdisc del dev eth0 root"
        subprocess.run(command.split(), capture_output=True)


@pytest.fixture
def ranks() -> Iterator[Callable[..., list[subprocess.Popen[str]]]]:
    """Starts a rank for each command, as a launcher would."""
    begun: list[subprocess.Popen[str]] = []

    def start(commands: list[list[str]], **more: str) -> list[subprocess.Popen[str]]:
        for rank, command in enumerate(commands):
            own = {"RANK": str(rank), "WORLD_SIZE": str(len(commands)), "LOCAL_RANK": "0"}
            begun.append(
                subprocess.Popen(
                    command,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    env=environ(**own, **more),
                    text=True,
                )
            )
        return begun

    yield start
    for rank in begun:
        rank.kill()
        rank.communicate()


def told(ranks: list[subprocess.Popen[str]]) -> ProbeReport:
    """What rank 0 says, and no other says anything."""
    said = [rank.communicate(timeout=300) for rank in ranks]
    assert [out for out, _ in said[1:]] == [""] * (len(ranks) - 1), said
    return report_in(said[0][0])


@pytest.fixture(scope="module")
def healthy(three_hosts: list[str], server: ForkServer) -> Iterator[str]:
    """What a probe of them tells while nothing is wrong, nor other tests in the way of a link."""
    launcher = Launcher(server)
    for _ in range(5):
        report = launcher.start(3, QUICK, hosts=three_hosts, **of_hosts()).said(0)
        measured = report_in(report).measured
        assert measured is not None
        if all((link.lowest or link.bandwidth) > 8 * THROTTLED for link in measured.links):
            break
    yield report
    launcher.close()


@pytest.mark.thorough
@pytest.mark.parametrize(("host", "to", "named"), first_of([(1, None, (1,)), (2, 1, (1, 2))]))
def test_the_host_or_the_link_that_is_throttled_is_named_and_that_it_became_slower(
    host: int,
    to: int | None,
    named: tuple[int, ...],
    three_hosts: list[str],
    healthy: str,
    throttle: Callable[[int, int | None], None],
    launcher: Launcher,
    tmp_path: Path,
) -> None:
    old = tmp_path / "old.json"
    old.write_text(healthy)
    throttle(host, to)
    ranks = launcher.start(3, [*QUICK, "--against", str(old)], hosts=three_hosts, **of_hosts())
    report = report_in(ranks.said(0))
    assert [ranks.said(rank) for rank in (1, 2)] == ["", ""]
    assert report.measured
    assert [one.ranks for one in report.findings if one.code == "DDP721"] == [named], (
        report.measured.links
    )
    since = [one.cause for one in report.findings if one.code == "DDP724"]
    assert any(cause.startswith("the link of ranks 1 and 2 gives") for cause in since), since


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.skipif(not shutil.which("faketime"), reason="needs faketime")
def test_hosts_whose_clocks_are_wrong_are_named_and_none_whose_clock_is_right(
    ranks: Callable[..., list[subprocess.Popen[str]]],
) -> None:
    skews = {"early": 7.0, "late": -3.0, "right": 0.0}
    commands = [[*COMMAND, "1"]]
    for host, skew in skews.items():
        told_time = ["faketime", "-f", f"{skew:+.0f}s"] if skew else []
        named = ["unshare", "--uts", "sh", "-c", f'hostname {host}; exec "$@"', "sh"]
        commands.append([*named, *told_time, *COMMAND, "1"])
    where = {"MASTER_ADDR": "127.0.0.1", "GLOO_SOCKET_IFNAME": "lo"}
    report = told(ranks(commands, MASTER_PORT=port(), **where))
    found = [one for one in report.findings if one.code == "DDP718"]
    assert [one.severity for one in found] == ["info"] * 2
    assert {host for host in skews for one in found if host in one.cause} == {"early", "late"}
    assert report.measured
    offsets = {one.host: one.offset for one in report.measured.clocks}
    assert offsets == {host: pytest.approx(skew, abs=0.2) for host, skew in skews.items()}


@pytest.fixture
def little_cpu() -> Iterator[Path]:
    """A control group, of either version, that grants 12 % of a CPU."""
    first = Path("/sys/fs/cgroup/cpu")
    top, file, quota = (
        (first, "cpu.cfs_quota_us", "12000")
        if first.is_dir()
        else (first.parent, "cpu.max", "12000 100000")
    )
    group = top / f"ddpdoctor-probe-{os.getpid()}"
    try:
        if top != first:
            (top / "cgroup.subtree_control").write_text("+cpu")
        group.mkdir()
        (group / file).write_text(quota)
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    yield group
    group.rmdir()


def test_a_rank_that_gets_little_of_a_cpu_is_named(little_cpu: Path, launcher: Launcher) -> None:
    slow = {1: {"CONTROL_GROUP": str(little_cpu)}}
    ranks = launcher.start(3, QUICK, target="gets_little", only=slow, MASTER_PORT=port())
    report = report_in(ranks.said(0))
    assert [one.ranks for one in report.findings if one.code == "DDP722"] == [(1,)]


@pytest.mark.parametrize(
    ("phase", "bad"),
    one_in(
        4,
        [*((phase, 1) for phase in ("nothing", "meeting", *STAGES)), ("meeting", 0), ("links", 0)],
    ),
)
def test_ranks_of_a_launcher_end_by_themselves_and_name_the_one_that_died(
    phase: str, bad: int, launcher: Launcher
) -> None:
    """In each phase: it never came, came and went, went as the group was made, or later."""
    terms = QUICK if phase == "joining" else IMPATIENT  # whose time may be over late, on busy cores
    ranks = launcher.start(3, terms, dies=(bad, phase, "SIGKILL"), MASTER_PORT=port())
    for rank in {0, 1, 2} - {bad}:
        (found,) = report_in(ranks.said(rank)).findings
        assert ranks.exit_code(rank) == 1
        assert (found.code, found.ranks) == ("DDP723", (bad,)), found.cause
        assert f"rank {bad}" in found.cause


@pytest.mark.thorough
def test_a_rank_that_is_stopped_is_named_by_the_others(launcher: Launcher) -> None:
    ranks = launcher.start(3, IMPATIENT, dies=(1, "links", "SIGSTOP"), MASTER_PORT=port())
    for rank in (0, 2):
        (found,) = report_in(ranks.said(rank)).findings
        assert (found.code, found.ranks) == ("DDP723", (1,)), found.cause


@pytest.mark.thorough
def test_a_rank_whose_interface_is_not_there_is_named_and_none_that_waits_for_it(
    launcher: Launcher,
) -> None:
    wrong = {1: {"GLOO_SOCKET_IFNAME": "eth99"}}
    ranks = launcher.start(3, QUICK, only=wrong, MASTER_PORT=port())
    for rank in range(3):
        (found,) = report_in(ranks.said(rank)).findings
        assert (found.code, found.ranks) == ("DDP723", (1,)), found.cause
        assert "rank 1 failed first, while joining: " in found.cause
        assert "Unable to find address for: eth99" in found.cause


@pytest.mark.parametrize(
    ("late", "fault", "words"),
    first_of(
        [
            (0, {"only": {1: {"GLOO_SOCKET_IFNAME": "eth99"}}}, "rank 1 failed first, while join"),
            (2, {"dies": (1, "joining", "SIGKILL")}, "rank 1 said nothing more"),
        ]
    ),
)
def test_a_healthy_rank_that_joins_late_is_not_named_beside_the_one_that_is_ill(
    late: int, fault: dict[str, Any], words: str, launcher: Launcher
) -> None:
    fault = {**fault, "only": {**fault.get("only", {}), late: {"JOINS_LATE": "yes"}}}
    ranks = launcher.start(3, IMPATIENT, target="joins_late", MASTER_PORT=port(), **fault)
    for rank in {0, 1, 2} - {fault.get("dies", (None,))[0]}:
        (found,) = report_in(ranks.said(rank)).findings
        assert (found.code, found.ranks) == ("DDP723", (1,)), found.cause
        assert words in found.cause


def test_a_rank_that_lives_and_does_not_go_on_is_named(launcher: Launcher) -> None:
    ranks = launcher.start(3, IMPATIENT, target="stays_away", MASTER_PORT=port())
    for rank in (0, 2):
        (found,) = report_in(ranks.said(rank)).findings
        assert (found.code, found.ranks) == ("DDP723", (1,)), found.cause
        assert "rank 1 did not go on while joining" in found.cause


def test_a_rank_that_cannot_host_the_store_says_why(launcher: Launcher) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = {"MASTER_PORT": str(taken.getsockname()[1])}
        said = launcher.start(1, IMPATIENT, **where).said(0)
    (found,) = report_in(said).findings
    assert (found.code, found.ranks) == ("DDP723", (0,))
    assert found.cause.startswith("rank 0 failed while joining: ")


def test_a_master_that_does_not_resolve_is_nobodys_fault(launcher: Launcher) -> None:
    where = {"MASTER_ADDR": "nowhere.invalid", "MASTER_PORT": port()}
    said = launcher.start(2, IMPATIENT, dies=(0, "nothing", "SIGKILL"), **where).said(1)
    (found,) = report_in(said).findings
    assert (found.code, found.ranks) == ("DDP723", ())
    assert found.cause.startswith("rank 1 did not reach rank 0 at nowhere.invalid:")


@pytest.mark.thorough
def test_a_rank_that_waits_for_one_that_lost_a_peer_is_not_called_silent(
    launcher: Launcher,
) -> None:
    patient = [*IMPATIENT, "--patience", "30"]
    ranks = launcher.start(3, patient, target="waits_for_one_that_waits", MASTER_PORT=port())
    for rank in (0, 2):
        (found,) = report_in(ranks.said(rank)).findings
        assert ": rank 1 said nothing more" in found.cause


@pytest.mark.parametrize("hosted", [True, False])
def test_rank_0_waits_for_the_others_only_where_its_process_hosts_the_store(
    hosted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meeting, "_SPARE", 0.1)
    port = free_port()
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", str(port))
    monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", str(not hosted))
    agent = None if hosted else dist.TCPStore("127.0.0.1", port, is_master=True)
    one = meeting.Meeting(0, 3, 0.1)
    one.store.set("ddpdoctor/lives/2", "")
    begun = time.monotonic()
    lost = one.ask("pace", "closed", False)
    assert str(lost) == "rank 0 lost a peer while pace: rank 1 said nothing more (closed)"
    assert lost.ranks == (1,)
    assert (time.monotonic() - begun > 0.3) == hosted
    del agent


def test_no_two_columns_of_a_table_are_headed_alike(report: ProbeReport) -> None:
    columns = [group.columns for group in telling.told(report).groups]
    assert all(len(set(each)) == len(each) for each in columns)


def test_pictures_show_every_pair_and_no_text_of_ours_is_markup(
    report: ProbeReport, tmp_path: Path
) -> None:
    measured = report.measured
    assert measured
    hostile = "<script>alert(1)</script>"
    ranks = tuple(one.model_copy(update={"host": hostile}) for one in measured.ranks)
    evil = report.model_copy(update={"measured": measured.model_copy(update={"ranks": ranks})})
    page = render(telling.told(evil), "html")
    assert hostile not in page
    assert page.count("<rect") == 2 * len(measured.links) + len(ranks)
    pytest.importorskip("matplotlib")
    telling.write_png(report, tmp_path / "probe.png")
    assert (tmp_path / "probe.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--nproc", "0"], "--nproc"),
        (["--nproc", "100000"], "100000 ranks need"),
        (["--seconds", "0"], "--seconds"),
        (["--patience", "0"], "--patience"),
        (["--backend", "mpi"], "--backend"),
        (["--against", "nowhere.json"], "nowhere.json"),
        (["--png", "/proc/probe.png"], "cannot write /proc/probe.png"),
        (["--png", "both", "-o", "other/../both"], "both: one file cannot be both"),
        *([] if torch.cuda.is_available() else [(["--backend", "nccl"], "--backend gloo")]),
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


@pytest.mark.parametrize(
    ("variables", "word"),
    [
        ({"RANK": "0", "WORLD_SIZE": "2"}, "MASTER_ADDR"),
        ({"RANK": "x", "WORLD_SIZE": "2"}, "no possible number"),
        ({"RANK": "2", "WORLD_SIZE": "2"}, "no such rank"),
        ({"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "a", "MASTER_PORT": "70000"}, "number"),
    ],
)
def test_a_rank_that_nobody_can_be_is_one_line(
    variables: dict[str, str],
    word: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert cli.run(["probe", "--seconds", "1"]) == 2
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1
    assert word in said


def test_under_a_launcher_the_number_of_ranks_is_not_ours_to_say(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", "29512")
    assert cli.run(["probe", "--nproc", "4"]) == 2
    assert "no --nproc" in capsys.readouterr().err
