"""`ddpdoctor config` with any sizes, names and hosts: what it writes is valid, or nothing is."""

import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_files import PyTorchJob
from test_plan import machine

from ddpdoctor import cli
from tests.thorough import examples

# What shells, YAML and command lines read otherwise than it stands, beside any letter there is.
HOSTILE = [*"'\"`$\\!#&|;<>(){}[]*?~%^=:@,.- ", "$(touch harm)", "`touch harm`", "'; touch harm; '"]
WORDS = st.lists(
    st.one_of(st.sampled_from(HOSTILE), st.text(max_size=4).filter(str.isprintable)),
    min_size=1,
    max_size=6,
).map("".join)
ANY = st.one_of(WORDS, WORDS, WORDS, st.text(max_size=9))
HOSTS = st.one_of(
    st.sampled_from(["node01", "10.0.0.1", "2001:db8::1", "[2001:db8::1]", "fe80::1%eth0", "a_b"]),
    ANY,
)
NAMES = st.one_of(
    st.sampled_from(["train", "a-1"]), st.text("abz019-", min_size=1, max_size=50), ANY
)
SIZES = st.one_of(st.integers(1, 9), st.integers(-1, 10**6)).map(str)

# Stand-ins, which write down with what they were started; mpirun and srun go on as one rank.
STAND_INS = {
    "python": 'case "$1" in -c) echo 4711 ;; *) printf "%s\\0" "$@" > "$SAID" ;; esac',
    "mpirun": """
[ "$1" = --version ] && echo Open MPI && exit
while [ "$1" != env ]; do shift; done
OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 exec "$@"
""",
    "srun": 'shift 2; SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_LOCALID=0 exec "$@"',
    "scontrol": "echo node01",
}


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for the file, and stand-ins for what it starts, one of them with a hard name."""
    for name, text in STAND_INS.items():
        path = tmp_path / ("it's a {python}\" $HOME" if name == "python" else name)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        if name == "python":
            monkeypatch.setattr("sys.executable", str(path))
    monkeypatch.setattr("ddpdoctor.environment.facts.collect", machine)
    (tmp_path / "job").mkdir()
    monkeypatch.chdir(tmp_path / "job")
    return tmp_path


def arguments_of(said: Path) -> list[str]:
    return [os.fsdecode(one) for one in said.read_bytes().split(b"\0")[:-1]]


@settings(
    max_examples=examples(100),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    launcher=st.sampled_from(["accelerate", "torchrun", "slurm", "kubernetes", "mpirun"]),
    options=st.fixed_dictionaries(
        {"script": ANY, "image": st.one_of(st.just("a/b:c"), ANY)},
        optional={
            "nproc": SIZES,
            "nodes": SIZES,
            "cpus": SIZES,
            "device": st.sampled_from(["auto", "cpu", "cuda"]),
            "master": HOSTS,
            "name": NAMES,
        },
    ),
    file=st.one_of(st.just("job.sh"), ANY.filter(lambda name: "/" not in name)),
)
def test_what_is_written_is_valid_and_says_what_was_asked_for(
    launcher: str,
    options: dict[str, str],
    file: str,
    started: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for old in Path.cwd().iterdir():
        old.unlink()
    given = [f"--{name}={value}" for name, value in options.items()]
    command = ["config", launcher, *given, "--no-try", f"--output={file}"]
    code = cli.run(command)
    said = capsys.readouterr()
    if code == 2:
        assert len(said.err.splitlines()) == 1, said.err
        assert list(Path.cwd().iterdir()) == []
        return
    assert code == 0, said.err
    text = said.out if file == "-" else Path(file).read_text(encoding="utf-8")
    if file != "-":
        (written,) = Path.cwd().iterdir()
        assert cli.run(command) == 2
        assert written.read_text(encoding="utf-8") == text
        assert "is there already" in capsys.readouterr().err
    if launcher == "kubernetes":
        check_manifest(text, options)
    elif launcher == "accelerate":
        known = yaml.safe_load(text)
        assert known["num_machines"] == int(options.get("nodes", "1"))
        if "nproc" in options:
            assert known["num_processes"] == int(options["nproc"]) * known["num_machines"]
        if known["num_machines"] > 1 and "master" in options:
            assert known["main_process_ip"] == options["master"].strip("[]")
    else:
        check_script(text, options["script"], started)
    if file != "-" and launcher != "kubernetes":
        how = next(line for line in text.splitlines() if "Start it with:" in line)
        words = shlex.split(how.partition("Start it with: ")[2])
        places = [number for number, word in enumerate(words) if Path(word) == Path(file)]
        assert places, how
        assert not words[places[0]].startswith("-")
        assert options["script"] in words


def check_manifest(text: str, options: dict[str, str]) -> None:
    known: Any = yaml.safe_load(text)
    job = PyTorchJob.model_validate(known)
    assert job.metadata.name == options.get("name", "train")
    assert (
        len(f"{job.metadata.name}-worker-{options.get('nodes', '1')}") <= 63
    )  # as services have it
    (container,) = job.spec.pytorchReplicaSpecs.Master.template.spec.containers
    assert container.image == options["image"]
    assert container.command == ["torchrun", options["script"]]


def check_script(text: str, script: str, started: Path) -> None:
    """Runs as its shell reads it: the script arrives as one word, and nothing else happens."""
    said = started / "said"
    said.unlink(missing_ok=True)
    shell = text.splitlines()[0].removeprefix("#!")
    subprocess.run(
        [shell],
        input=text,
        encoding="utf-8",
        check=True,
        env={
            "PATH": f"{started}:/usr/bin:/bin",
            "SAID": str(said),
            "SLURM_JOB_NODELIST": "node01",
            "SLURM_JOB_ID": "7",
            "SLURM_CPUS_PER_TASK": "1",
        },
    )
    assert arguments_of(said)[-1] == script
    assert not list(Path.cwd().glob("harm"))


@pytest.mark.parametrize("name", ["9lives", "train-", "a" * 60])
def test_a_name_that_kubernetes_would_refuse_is_not_written(
    name: str, started: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--nproc=2", "--image=a", f"--name={name}", "--no-try"]
    assert cli.run(["config", "kubernetes", *given]) == 2
    assert "--name" in capsys.readouterr().err
