"""`ddpdoctor env` for people."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from ddpdoctor.catalog import Cure, Finding, Severity
from ddpdoctor.environment import model as facts
from ddpdoctor.environment.model import EnvironmentReport
from ddpdoctor.environment.telling import told
from ddpdoctor.report.model import render
from ddpdoctor.report.output import Page

PYTHON = facts.Python(
    version="3.11.7", implementation="CPython", executable="/usr/bin/python3", platform="Linux"
)


def full() -> facts.Environment:
    return facts.Environment(
        python=PYTHON,
        torch=facts.Torch(
            version="2.13.0",
            folder="/site-packages/torch",
            cuda="13.0",
            hip=None,
            backends=("gloo", "nccl"),
            nccl_built="2.29.7",
            nccl_loaded="2.29.7",
            nccl_library="libnccl.so.2",
            visible_gpus=1,
            threads=8,
        ),
        nccl_packages=("nvidia-nccl-cu13 2.29.7",),
        gpus=(
            facts.Gpu(
                index=0,
                name="NVIDIA H100",
                uuid="GPU-1",
                memory_mib=81559,
                compute_mode="Default",
                mig="Disabled",
                driver="580.1",
            ),
        ),
        infiniband=("mlx5_0",),
        fabric=(
            facts.Fabric(
                device="mlx5_0",
                port=1,
                state="4: ACTIVE",
                rate="200 Gb/sec (4X HDR)",
                layer="InfiniBand",
            ),
        ),
        topology=("     GPU0  NIC0", "GPU0  X    PIX"),
        kernel=facts.Kernel(
            release="6.1.0",
            numa_nodes=2,
            numa_balancing=True,
            ptrace_scope=1,
            lowest_port=1024,
            outgoing_ports=(32768, 60999),
            privileged=False,
        ),
        clock=facts.Clock(synchronised=True, error_seconds=0.01),
        container="docker",
        folder=facts.Folder(
            path="/checkpoints",
            filesystem="nfs4",
            remote=True,
            free=2**40,
            replaces=True,
            syncs=True,
            locks=facts.Unknown(unknown="refused"),
        ),
        cpus=facts.Cpus(count=64, affinity=8, allowed=16, quota=7.5),
        memory=facts.Memory(total=2**40 * 2, available=2**30 * 100, limit=2**30 * 64),
        shared_memory=facts.SharedMemory(size=2**26, free=2**20, tried=2**20, takes_it=False),
        limits=facts.Limits(
            open_files=facts.Limit(soft=1024, hard=None),
            locked_memory=facts.Limit(soft=None, hard=None),
            processes=facts.Limit(soft=4096, hard=4096),
            tasks_allowed=512,
            tasks_used=10,
        ),
        interfaces=(
            facts.Interface(name="eth0", addresses=("192.0.2.2",), up=True, loopback=False),
            facts.Interface(name="ib0", addresses=(), up=False, loopback=False),
        ),
        hostname=facts.HostName(name="node1", addresses=("192.0.2.2",), loopback=False),
        master=facts.Master(address="node0", addresses=("192.0.2.1",), loopback=False, local=False),
        listeners=(facts.Listener(port=29500, process="python 4711"),),
        launchers=(facts.Launcher(name="srun", rank=3, size=8, local_rank=3, local_size=4),),
        context=("a SLURM job",),
        variables=(
            facts.SetVariable(
                name="NCCL_DEBUG", value="INFO", redacted=False, status="debug", read_by="NCCL"
            ),
        ),
        search=facts.Absent(absent="not asked"),
    )


def empty() -> facts.Environment:
    lost = facts.Unknown(unknown="permission denied")
    return facts.Environment(
        python=PYTHON,
        torch=facts.Absent(absent="not installed"),
        nccl_packages=(),
        gpus=facts.Absent(absent="no nvidia-smi"),
        infiniband=(),
        fabric=lost,
        topology=facts.Absent(absent="no nvidia-smi"),
        kernel=lost,
        clock=lost,
        container=lost,
        folder=lost,
        cpus=lost,
        memory=lost,
        shared_memory=lost,
        limits=lost,
        interfaces=lost,
        hostname=lost,
        master=lost,
        listeners=lost,
        launchers=(),
        context=(),
        variables=(),
        search=lost,
    )


def finding(severity: Severity, text: str) -> Finding:
    return Finding(
        code="DDP109",
        title="variable-ignored",
        severity=severity,
        certainty="proven",
        ranks=(),
        places=(),
        cause=text,
        cure=Cure(text=text, commands=(text,)),
        evidence=(text,),
    )


def report(known: facts.Environment, *findings: Finding) -> EnvironmentReport:
    return EnvironmentReport(environment=known, findings=findings)


@pytest.mark.parametrize(
    "fact",
    [
        "Python 3.11.7 (CPython), /usr/bin/python3",
        "torch 2.13.0 (CUDA 13.0, 8 threads), /site-packages/torch",
        "backends gloo, nccl",
        "NCCL 2.29.7",
        "NCCL packages nvidia-nccl-cu13 2.29.7",
        "GPU 0 NVIDIA H100, 81559 MiB, driver 580.1, MIG Disabled",
        "InfiniBand mlx5_0",
        "CPUs 64, in the control group 16, by affinity 8, by quota 7.5",
        "memory 2 TiB, 100 GiB available, limit 64 GiB",
        "/dev/shm 64 MiB, 1 MiB free, writing works, a file of 1 MiB fails",
        "limits open files 1024, processes 4096, locked memory unlimited, tasks 512",
        "interface eth0 192.0.2.2",
        "interface ib0 down, no address",
        "host name node1, which is 192.0.2.2",
        "master node0, which is 192.0.2.1",
        "port 29500 taken by python 4711",
        "launcher srun: rank 3 of 8",
        "runs inside a SLURM job",
        "NCCL_DEBUG INFO (read by NCCL)",
    ],
)
def test_every_fact_is_told(fact: str) -> None:
    assert fact in " ".join(render(told(report(full())), "text").split())


def test_what_could_not_be_found_out_is_told_and_counted() -> None:
    text = render(told(report(empty())), "text")
    assert text.count("not checked (permission denied)") == 12
    assert "torch        none (not installed)" in text
    assert "0 errors, 0 warnings, 0 harmless, 14 not checked" in text


def test_a_finding_shows_evidence_cure_and_command() -> None:
    found = finding("warning", "NCCL_TIMEOUT=3600 has no effect")
    text = render(told(report(full(), found)), "text")
    assert "▲ DDP109 variable-ignored · proven\n" in text
    for opening in ("Cause     ", "Evidence  ", "Remedy    ", "          $ "):
        assert f"  {opening}NCCL_TIMEOUT=3600 has no effect" in text
    assert text.endswith("\n0 errors, 1 warning, 0 harmless, 1 not checked\n")


@given(st.text(), st.integers(50, 100))
def test_no_text_of_a_finding_makes_a_line_too_long_or_moves_the_cursor(
    text: str, width: int
) -> None:
    shown = render(told(report(full(), finding("error", text))), "text", Page(width))
    assert max(map(cell_len, shown.split("\n"))) <= width
    assert shown.replace("\n", "").isprintable()


@given(st.text())
def test_no_text_of_a_finding_acts_in_markdown(text: str) -> None:
    shown = render(told(report(full(), finding("error", text))), "markdown")
    shown = re.sub(r"(?<![\\`])`[^`]+`", "", shown)
    ours = ["<details>", "<summary>", "</summary>", "</details>"]
    assert re.findall(r"(?<!\\)(?:\\\\)*(<[^>]*>?)", shown) == ours
    assert "| NCCL\\_DEBUG | INFO (read by NCCL) |" in shown
