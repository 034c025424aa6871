"""Take the fix out of a function of the stack, and the row that it is the fix of must fail.

Otherwise a row would prove nothing of the function that it names. Each mutation is made in a copy
of the package, in which a doctor of its own then launches the fix.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import ddpdoctor
from ddpdoctor import catalog
from tests.patience import ENDLESS
from tests.thorough import first_of

NPROC = 3
_TRIES = 3

CHECK = f"""
import json, sys
from ddpdoctor import catalog, stack
from ddpdoctor.check import CheckOptions, check
wanted = {{tuple(each) for each in json.loads(sys.argv[1])}}
chosen = []
for pitfall in catalog.load().values():
    variants = tuple(v for v in pitfall.variants if (pitfall.code, v.name) in wanted)
    chosen += [pitfall.model_copy(update={{"variants": variants}})] if variants else []
report = check(chosen, CheckOptions(nproc={NPROC}), lambda _: None, lambda *_: None)
said = [(v.code, v.variant, v.status, v.evidence) for v in report.verdicts]
json.dump({{"stack": stack.__file__, "verdicts": said}}, sys.stdout)
"""


@dataclass(frozen=True)
class Mutation:
    """A piece of the stack's source that is a fix, and the source without it."""

    name: str
    code: str
    fix: str
    module: str
    was: str
    becomes: str
    told: str
    """Found in the verdict's evidence: that the fix fails for this reason, and not for another."""


MUTATIONS = [
    Mutation(
        name="a session inside a session joins once more",
        code="DDP102",
        fix="sessions_that_nest",
        module="process_group.py",
        was="    if dist.is_initialized():\n        yield _existing_world()\n        return\n",
        becomes="",
        told="double-init",
    ),
    Mutation(
        name="shards are made equal by leaving out the rest",
        code="DDP208",
        fix="stack_predictions",
        module="samplers.py",
        was="return range(rank, length, world_size)",
        becomes="return range(rank, length - length % world_size, world_size)",
        told=r"the error is [\d.]+, not",
    ),
    Mutation(
        name="each rank takes its own number of samples for that of all",
        code="DDP309",
        fix="global_mean_of_the_stack",
        module="loss.py",
        was="    return int(Totals([local_count], world).arrived().item())\n",
        becomes="    return local_count * world.world_size\n",
        told="the gradient is off",
    ),
    Mutation(
        name="a rank that fails raises before it has told the others",
        code="DDP404",
        fix="stack_load_raises_everywhere",
        module="outcome.py",
        was="    mine = None if error is None else _described(error)\n",
        becomes="    if error is not None:\n        raise error\n    mine = None\n",
        told=r"outcome\.py|the ranks raised|sees no file does not say so",
    ),
    Mutation(
        name="predictions go through the wrapper",
        code="DDP406",
        fix="stack_predict_on_every_rank",
        module="evaluation.py",
        was="model = unwrap(model).eval()\n    shape",
        becomes="model = model.eval()\n    shape",
        told=r"evaluation\.py",
    ),
    Mutation(
        name="a save returns before the file is there",
        code="DDP501",
        fix="atomic_save_with_a_shared_outcome",
        module="checkpoint.py",
        was="""    with together(world):
        if world.is_main:
            with replacing(path) as file:
                torch.save(state, file)
""",
        becomes="""    if world.is_main:
        with replacing(path) as file:
            torch.save(state, file)
""",
        told="checkpoint-race|epochs loaded",
    ),
    Mutation(
        name="a checkpoint is written in place",
        code="DDP503",
        fix="stack_writer",
        module="checkpoint.py",
        was="""    temporary = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
    try:
        with temporary.open("xb") as file:
""",
        becomes="""    temporary = path
    try:
        with temporary.open("wb") as file:
""",
        told="neither the old nor the new",
    ),
    Mutation(
        name="an average does not read its decay again",
        code="DDP507",
        fix="stack_average",
        module="ema.py",
        was="decay = min(self.decay, self.updates / (self.updates + 9))",
        becomes="decay = min(0.99, self.updates / (self.updates + 9))",
        told="does not move with",
    ),
]


def verdicts(root: Path, *wanted: tuple[str, str]) -> dict[tuple[str, str], tuple[str, str]]:
    """Check these fixes with the package that lies in `root`: status and evidence of each."""
    environment = {**os.environ, "PYTHONPATH": str(root)}
    command = [sys.executable, "-c", CHECK, json.dumps(wanted)]
    done = subprocess.run(
        command,
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=ENDLESS,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert Path(said["stack"]).is_relative_to(root), f"{said['stack']} was checked instead"
    return {(code, name): (status, told) for code, name, status, told in said["verdicts"]}


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A folder with a copy of the package, and the reproducers beside it or in it."""
    package = Path(ddpdoctor.__file__).parent
    shutil.copytree(package, tmp_path / "ddpdoctor")
    if not (package / "reproducers").is_dir():
        (tmp_path / "reproducers").symlink_to(catalog.reproducers_folder())
    return tmp_path


@pytest.mark.thorough
def test_without_a_mutation_every_one_of_these_fixes_holds(copied: Path) -> None:
    wanted = {(each.code, each.fix) for each in MUTATIONS}
    found = verdicts(copied, *sorted(wanted))
    assert found.keys() == wanted
    assert {name: told for name, told in found.items() if told[0] != "holds"} == {}


@pytest.mark.parametrize("mutation", first_of(MUTATIONS), ids=lambda each: each.name)
def test_a_mutation_makes_the_fix_of_its_row_fail(mutation: Mutation, copied: Path) -> None:
    source = copied / "ddpdoctor" / "stack" / mutation.module
    text = source.read_text(encoding="utf-8")
    assert text.count(mutation.was) == 1, f"{mutation.module} has changed: mend this mutation"
    source.write_text(text.replace(mutation.was, mutation.becomes), encoding="utf-8")
    for _ in range(_TRIES):
        ((status, told),) = verdicts(copied, (mutation.code, mutation.fix)).values()
        if "the kernel killed processes meanwhile" not in told:  # another test's, on purpose
            break
    assert status == "fails", told
    assert re.search(mutation.told, told), told
