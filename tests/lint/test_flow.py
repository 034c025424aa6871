"""One bug in many words: what flow decides, names do not hide; and correct look-alikes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddpdoctor.lint.files import collect
from ddpdoctor.lint.linter import lint

HEAD = "import torch.distributed as dist\ndist.init_process_group('gloo')\n"
BUGS = {
    "a rank out of a tuple": HEAD
    + "def setup():\n    return dist.get_world_size(), dist.get_rank()\n"
    "n, me = setup()\nif me == 0:\n    dist.barrier()  # BUG\n",
    "an alias of the barrier": HEAD
    + "wait = dist.barrier\nif dist.get_rank() == 0:\n    wait()  # BUG\n",
    "a generator behind its decorator, by number": HEAD
    + "import functools\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n"
    "def plain(do):\n    @functools.wraps(do)\n    def inner(*a):\n        return do(*a)\n"
    "    return inner\nclass Some:\n    @plain\n    def __iter__(self):\n"
    "        for each in range(3):\n            yield each\n"
    "for number, each in enumerate(Some()):\n    if dist.get_rank() == each:\n"
    "        dist.barrier()  # BUG\n",
    "a rank in another object": HEAD
    + "class Env:\n    def __init__(self):\n        self.number = dist.get_rank()\n"
    "class Trainer:\n    def __init__(self, env):\n        self.env = env\n"
    "    def save(self):\n        if self.env.number == 0:\n            dist.barrier()  # BUG\n"
    "Trainer(Env()).save()\n",
    "a decorator": HEAD
    + "import functools\ndef chief(f):\n    @functools.wraps(f)\n    def inner(*a, **k):\n"
    "        if dist.get_rank() == 0:\n            return f(*a, **k)\n    return inner\n"
    "@chief\ndef save():\n    dist.barrier()  # BUG\nsave()\n",
    "a dictionary": HEAD
    + "info = {'who': dist.get_rank()}\nif info['who'] == 0:\n    dist.barrier()  # BUG\n",
    "a rank of the environment, as the text that it is": HEAD
    + "import os\nif os.environ['RANK'] == '0':\n    dist.barrier()  # BUG\n",
    "a text that tells a number": HEAD + "role = '0' if dist.get_rank() == 0 else '1'\n"
    "if role == '0':\n    dist.barrier()  # BUG\nif str(dist.get_rank()) == '0':\n"
    "    dist.barrier()  # BUG\n",
    "a tuple that is compared": HEAD + "import sys\nfor step in range(9):\n"
    "    if (dist.get_rank(), step) == (int(sys.argv[1]), 3):\n        dist.barrier()  # BUG\n",
    "a flag of a flag": HEAD + "boss = False\nif dist.get_rank() == 0:\n    boss = True\n"
    "if boss:\n    dist.barrier()  # BUG\n",
    "a partial": HEAD + "from functools import partial\ngo = partial(dist.barrier)\n"
    "if not dist.get_rank():\n    go()  # BUG\n",
    "a lambda": HEAD
    + "is_first = lambda: dist.get_rank() < 1\nif is_first():\n    dist.barrier()  # BUG\n",
    "a property": HEAD
    + "class A:\n    @property\n    def lead(self):\n        return dist.get_rank() == 0\n"
    "    def go(self):\n        if not self.lead:\n            return\n"
    "        dist.barrier()  # BUG\nA().go()\n",
    "an arm of an expression": HEAD + "x = dist.get_rank()\nx % 8 == 0 and dist.barrier()  # BUG\n",
    "a context manager": HEAD
    + "from contextlib import contextmanager\n@contextmanager\ndef done(r):\n    yield\n"
    "    if r == 0:\n        dist.barrier()  # BUG\nwith done(dist.get_rank()):\n    pass\n",
    "a loop over ranks' own number": HEAD
    + "for _ in range(dist.get_rank()):\n    dist.barrier()\n",
}
LOOK_ALIKES = {
    "what kind of GPU a rank has, which is the others' as well": HEAD
    + "import torch\nif torch.cuda.get_device_properties(dist.get_rank()).total_memory > 14e9:\n"
    "    dist.barrier()\n",
    "a text that no rank's is": HEAD
    + "role = '0' if dist.get_rank() == 0 else '1'\nif role != '2':\n    dist.barrier()\n",
    "a tuple of what all ranks have": HEAD
    + "import sys\nfor step in range(9):\n    if (dist.get_world_size(), step) == "
    "(int(sys.argv[1]), 3):\n        dist.barrier()\n",
    "the size out of a tuple": HEAD
    + "def setup():\n    return dist.get_world_size(), dist.get_rank()\n"
    "n, me = setup()\nif n > 1:\n    dist.barrier()\n",
    "a rank that means not distributed": HEAD
    + "import os\nr = int(os.environ.get('RANK', -1))\nif r == -1:\n    print('alone')\n"
    "else:\n    dist.barrier()\n",
    "a flag that was broadcast": HEAD
    + "import torch, time\nlate = torch.tensor(float(time.time() > 9))\n"
    "dist.broadcast(late, 0)\nif late.item():\n    dist.barrier()\n",
    "a local name called rank": HEAD
    + "for rank in range(3):\n    if rank == 0:\n        dist.barrier()\n",
    "both arms": HEAD
    + "if dist.get_rank() == 0:\n    dist.barrier()\nelse:\n    print()\n    dist.barrier()\n",
    "the main process first": HEAD
    + "r = dist.get_rank()\nif r:\n    dist.barrier()\nprint()\nif not r:\n    dist.barrier()\n",
    "a protocol": HEAD
    + "import torch\nt = torch.zeros(1)\nif dist.get_rank() == 0:\n    for i in range(3):\n"
    "        dist.broadcast(t, 0)\n    dist.broadcast(t, 0)\nelse:\n    while True:\n"
    "        dist.broadcast(t, 0)\n        if t.item():\n            break\n",
    "an argument that is always false": HEAD
    + "def run(train):\n    if train:\n        dist.barrier()\n"
    "if dist.get_rank() == 0:\n    run(False)\n",
}


def found(text: str, folder: Path) -> set[tuple[str, int]]:
    path = folder / "train.py"
    path.write_text(text)
    result = lint([str(path)])
    assert not result.troubles
    return {(each.code, each.line) for each in result.diagnostics}


@pytest.mark.parametrize("name", BUGS)
def test_a_bug_is_found_in_whatever_words(name: str, tmp_path: Path) -> None:
    marked = {n for n, line in enumerate(BUGS[name].splitlines(), 1) if line.endswith("# BUG")}
    codes = found(BUGS[name], tmp_path)
    assert {line for code, line in codes if code == "DDP401"} == marked or (
        not marked and {code for code, _ in codes} & {"DDP401", "DDP418"}
    )


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_a_correct_look_alike_is_not_accused(name: str, tmp_path: Path) -> None:
    assert found(LOOK_ALIKES[name], tmp_path) == set()


def test_what_may_be_looked_up_is_not_surely_run_again(tmp_path: Path) -> None:
    text = HEAD + (
        "import functools, sys\n@functools.cache\ndef score(place):\n    dist.barrier()\n"
        "    return place\nfor each in sys.argv:\n    score(each)\n"
        "if dist.get_rank() == 0:\n    score(sys.argv[1])\n"
    )
    told = {}
    for name, source in {"kept.py": text, "run.py": text.replace("@functools.cache\n", "")}.items():
        (tmp_path / name).write_text(source)
        found = lint([str(tmp_path / name)]).diagnostics
        told[name] = [(each.code, each.confidence) for each in found]
    assert told == {"kept.py": [("DDP401", "likely")], "run.py": [("DDP401", "certain")]}


@pytest.mark.parametrize(
    ("first", "confidence"), [("me // 2 * 2", "likely"), ("me - me % 1", "certain")]
)
def test_groups_that_two_ranks_would_make_alike_are_not_surely_others(
    first: str, confidence: str, tmp_path: Path
) -> None:
    text = HEAD + (
        "import os\nme = int(os.environ['RANK'])\n"
        f"mine = list(range({first}, {first} + 2))\ndist.new_group(mine)\n"
    )
    (tmp_path / "run.py").write_text(text)
    found = lint([str(tmp_path / "run.py")]).diagnostics
    assert [(each.code, each.confidence) for each in found] == [("DDP408", confidence)]


def test_a_base_class_in_another_file_is_followed(tmp_path: Path) -> None:
    (tmp_path / "base.py").write_text(
        "import torch.distributed as dist\n\n\nclass Base:\n    def setup(self):\n"
        "        self.me = dist.get_rank()\n\n    def sync(self):\n        dist.barrier()\n"
    )
    (tmp_path / "train.py").write_text(
        "from base import Base\n\n\nclass Mine(Base):\n    def go(self):\n        self.setup()\n"
        "        if self.me == 0:\n            self.sync()\n\n\n"
        "if __name__ == '__main__':\n    Mine().go()\n"
    )
    result = lint(list(collect([str(tmp_path)])))
    mine = [each for each in result.diagnostics if each.code == "DDP401"]
    assert [(Path(each.path).name, each.line, each.confidence) for each in mine] == [
        ("train.py", 8, "certain")
    ]


def test_a_class_reads_its_defaults_before_anybody_joins_and_a_factory_later(
    tmp_path: Path,
) -> None:
    text = (
        "import torch.distributed as dist\nfrom dataclasses import dataclass, field\n@dataclass\n"
        "class Plan:\n    rows: int = 64\n    ranks: int = dist.get_world_size()\ndef main():\n"
        "    dist.init_process_group('gloo')\n    plan = Plan()\n    print(plan.ranks)\nmain()\n"
    )
    assert found(text, tmp_path) == {("DDP201", 6)}
    later = text.replace("dist.get_world_size()", "field(default_factory=dist.get_world_size)")
    assert found(later, tmp_path) == set()
