"""`train` and `predict`: options that are the fields of a model, and how a job ends."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, PositiveInt

from ddpdoctor import cli
from ddpdoctor.stack.config import Flags
from ddpdoctor.stack.errors import DataError, StackError, StoppedError
from ddpdoctor.train.systems import PREDICT, TRAIN, System

Capture = pytest.CaptureFixture[str]
COMMANDS = [
    *(("train", *item) for item in TRAIN.items()),
    *(("predict", *item) for item in PREDICT.items()),
]
IDS = [f"{verb} {name}" for verb, name, _ in COMMANDS]


class Shape(BaseModel):
    """Draw a shape."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)
    drawn: ClassVar[list[Any]] = []
    error: ClassVar[Exception | None] = None

    n_sides: Annotated[PositiveInt, Flags(("sides", "s"))] = 3
    """How many."""
    is_filled: bool = False
    """With ink."""
    line_width: float | None = 0.5
    """Millimetres; none: no line."""
    colour: list[str] = Field(default=[])
    """Names; repeat, or use commas."""
    style: Literal["plain", "dotted"] = "plain"
    """Of the line."""
    file: Path | None = None
    """Where to."""

    def run(self) -> str:
        """Draw."""
        self.drawn.append(self)
        if self.error:
            raise self.error
        return "a shape\n"


@pytest.fixture(autouse=True)
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.setattr("ddpdoctor.complaints.time.sleep", lambda seconds: None)
    monkeypatch.setitem(TRAIN, "shape", System("Draw.", "x", ("os",), f"{__name__}:Shape"))
    monkeypatch.setattr(Shape, "drawn", [])
    return Shape.drawn


def complaint(capsys: Capture) -> str:
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch("ddpdoctor: .*\n", err), err
    return err


def test_what_is_not_said_is_the_models_default(drawn: list[Any], capsys: Capture) -> None:
    assert cli.run(["train", "shape"]) == 0
    assert drawn == [Shape()]
    assert capsys.readouterr().out == "a shape\n"


@pytest.mark.parametrize(
    "said",
    [
        "--n-sides 5 --is-filled --line-width 2 --colour red,green --colour blue --style dotted",
        "--n_sides 5 --is_filled --line_width=2.0 --colour red --colour green,blue --style=dotted",
        "-s 5 --no-is-filled --is-filled --line-width 2 --colour red,green,blue --style dotted",
    ],
)
def test_every_field_is_an_option_in_either_spelling(drawn: list[Any], said: str) -> None:
    assert cli.run(["train", "shape", *said.split(), "--file", "a_b-c,d"]) == 0
    colours = ["red", "green", "blue"]
    assert drawn == [
        Shape(
            n_sides=5,
            is_filled=True,
            line_width=2.0,
            colour=colours,
            style="dotted",
            file=Path("a_b-c,d"),
        )
    ]


def test_none_is_said_in_words(drawn: list[Any]) -> None:
    assert cli.run(["train", "shape", "--line-width", "none"]) == 0
    assert drawn[0].line_width is None


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("--n-sides 0", "--n-sides 0: input should be greater than 0"),
        ("--sides many", "--n-sides many: input should be a valid integer"),
        ("--style dashed --sides 0", "'plain' or 'dotted'"),
        ("--line_widht 3", "--line-width"),
        ("--colour", "--colour"),
        ("a.xyz", "a.xyz"),
    ],
)
def test_what_is_wrong_is_named_in_one_line(
    drawn: list[Any], capsys: Capture, said: str, message: str
) -> None:
    assert cli.run(["train", "shape", *said.split()]) == 2
    assert message in complaint(capsys)
    assert drawn == []


def test_a_system_that_is_none_is_named_with_the_nearest(capsys: Capture) -> None:
    assert cli.run(["train", "crystl"]) == 2
    assert "there is no system 'crystl' to train: did you mean crystal?" in complaint(capsys)
    assert cli.run(["predict"]) == 2
    assert complaint(capsys) == "ddpdoctor: say what to predict: crystal\n"


def test_of_several_ranks_with_one_mistake_rank_0_tells_it(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Shape, "error", DataError("there is no ink"))
    monkeypatch.setenv("RANK", "1")
    assert cli.run(["train", "shape"]) == 2
    assert capsys.readouterr() == ("", "")
    monkeypatch.setenv("RANK", "0")
    assert cli.run(["train", "shape"]) == 2
    assert complaint(capsys) == "ddpdoctor: there is no ink\n"


def test_a_rank_with_a_fault_of_its_own_tells_it_itself(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Shape, "error", KeyError("lost"))
    monkeypatch.setenv("RANK", "1")
    assert cli.run(["train", "shape"]) == 2
    assert "ddpdoctor: rank 1: a fault of ours, KeyError: 'lost'" in complaint(capsys)


def test_a_rank_whose_peer_is_gone_says_so_and_is_no_fault(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    reset = "[third_party/gloo/gloo/transport/tcp/pair.cc:537] Connection reset by peer"
    monkeypatch.setattr(Shape, "error", RuntimeError(reset))
    monkeypatch.setenv("RANK", "1")
    assert cli.run(["train", "shape"]) == 1
    told = complaint(capsys)
    assert told.startswith("ddpdoctor: rank 1: another rank has ended")
    assert told.endswith("Connection reset by peer\n")


def test_a_training_that_was_asked_to_end_says_where_it_stands(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Shape, "error", StoppedError("saved a.pt"))
    assert cli.run(["train", "shape"]) == 143
    assert complaint(capsys) == "ddpdoctor: saved a.pt\n"


def test_ranks_beside_rank_0_print_no_result(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "1")
    assert cli.run(["train", "shape"]) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("verb", "name", "system"), COMMANDS, ids=IDS)
def test_every_option_of_every_system_has_a_help_text(
    verb: str, name: str, system: System, capsys: Capture
) -> None:
    model = system.load()
    assert [field for field, info in model.model_fields.items() if not info.description] == []
    assert cli.run([verb, name, "--help"]) == 0
    out = capsys.readouterr().out
    for field in model.model_fields:
        assert f"--{field.replace('_', '-')}" in out


@pytest.mark.parametrize(("verb", "name", "system"), COMMANDS, ids=IDS)
def test_what_a_system_lacks_is_named_with_the_extra_that_has_it(
    verb: str, name: str, system: System, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert cli.run([verb, name]) == 2
    assert f"pip install 'ddpdoctor[{system.extra}]'" in complaint(capsys)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("train crystal --extxyz a.extxyz", "belong together"),
        ("train crystal --target bulk", "belong together"),
        ("train crystal --extxyz none.extxyz --target m", "there is no file none.extxyz"),
        ("train crystal --learning-rate-rule sqrt", "needs base_batch"),
        ("train crystal --width 7 --heads 2", "width 7 is not a multiple of heads 2"),
        ("train crystal --distributed", "torchrun"),
        ("train protein --mask_ratio 0", "--mask-ratio 0: input should be greater than 0"),
        ("train protein --mask_ratio 1.5", "--mask-ratio 1.5: input should be less than 1"),
        ("train protein --pdb_path nowhere", "there is no file or folder nowhere"),
        ("train protein --pdb_path .", "holds no file that ends with .pdb"),
        ("train protein --ddp", "torchrun"),
        ("train protein --master_port 0", "--master-port 0: "),
        ("train detection --stop-epoch 30 --epochs 30", "stop_epoch 30 is not below n_epochs 30"),
        ("train detection --distributed", "torchrun"),
        ("predict crystal", "--extxyz is needed"),
        ("predict crystal --extxyz none.extxyz", "there is no file none.extxyz"),
    ],
)
def test_bad_input_is_one_line(
    arguments: str, message: str, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.run(arguments.split()) == 2
    assert message in complaint(capsys)


def test_torchrun_trains_by_the_command_and_a_checkpoint_predicts(tmp_path: Path) -> None:
    size = "--width 8 --heads 2 --layers 1 --n_radial 8 --cutoff 4 --epochs 1 --seed 3"
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    train = [*launch, "-m", "ddpdoctor", "train", "crystal", *size.split()]
    done = subprocess.run(train, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.match(r"test error \S+, \S+ of the mean .* on 2 rank\(s\)", done.stdout)
    assert "global batch 128: 64 samples on each of 2 rank(s)" in done.stderr
    header = '1\nLattice="3 0 0 0 3 0 0 0 3" Properties=species:S:1:pos:R:3 pbc="T T T"\n'
    (tmp_path / "new.extxyz").write_text(header + "Cu 0 0 0\n" + header + "Ag 0 0 0\n")
    predict = [sys.executable, "-m", "ddpdoctor", "predict", "crystal"]
    told = subprocess.run(
        [*predict, "--extxyz", "new.extxyz"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    assert re.fullmatch(r"index,formula,label\n0,Cu,\S+\n1,Ag,\S+\n", told.stdout)


def test_a_stack_error_of_any_kind_is_no_fault(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Shape, "error", StackError("no"))
    assert cli.run(["train", "shape"]) == 2
    assert complaint(capsys) == "ddpdoctor: no\n"
