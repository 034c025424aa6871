"""The places that a finding tells beside its own: where a person would look next, or mend it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddpdoctor.lint.linter import lint

HEAD = (
    "import functools, sys, torch\nimport torch.distributed as dist\n"
    "from torch.utils.checkpoint import checkpoint\n"
    "from torch.nn.parallel import DistributedDataParallel as DDP\n"
    "dist.init_process_group('gloo')\ntorch.manual_seed(dist.get_rank())\n"
)
LOOP = (
    "opt = torch.optim.SGD(net.parameters(), 0.1)\nfor _ in range(9):\n    x = torch.randn(4, 4)\n"
)
STEP = "    opt.step()\n    opt.zero_grad()\n"
TOLD = {
    "who enters no_sync, seen from the step": HEAD
    + "import contextlib\nnet = DDP(torch.nn.Linear(4, 4))\n"
    "@contextlib.contextmanager\ndef held(net, holds):\n    if holds:\n"
    "        with net.no_sync():\n            yield\n    else:\n        yield\n"
    "opt = torch.optim.SGD(net.parameters(), 0.1)\nfor turn in range(10):\n"
    "    x = torch.randn(4, 4)\n    with held(net, turn % 4 != 3):  # TOLD\n"
    "        net(x).mean().backward()\n    if turn % 4 == 3 or turn == 9:\n"
    "        opt.step()\n        opt.zero_grad()\n",
    "where no_sync is made that is entered elsewhere": HEAD
    + "import contextlib\nnet = DDP(torch.nn.Linear(4, 4))\n"
    "def held(turn):\n    if turn % 4 == 3:\n        return contextlib.nullcontext()\n"
    "    return net.no_sync()  # TOLD\n"
    "opt = torch.optim.SGD(net.parameters(), 0.1)\nfor turn in range(10):\n"
    "    x = torch.randn(4, 4)\n    with held(turn):\n"
    "        net(x).mean().backward()\n    if turn % 4 == 3 or turn == 9:\n"
    "        opt.step()\n        opt.zero_grad()\n",
    "where they part who write what others load": HEAD + "net = DDP(torch.nn.Linear(4, 4))\n"
    "def keep():\n    torch.save(net.module.state_dict(), 'net.pt')\n"
    "if dist.get_rank() == 0:  # TOLD\n    keep()\n"
    "net.module.load_state_dict(torch.load('net.pt'))\n",
    "who seeds all ranks alike before they draw their samples": HEAD[: HEAD.rindex("torch.man")]
    + "def settle(seed):\n    torch.manual_seed(seed)\nsettle(7)  # TOLD\n"
    "def drawn(n):\n    x = torch.rand(n)\n    return torch.stack([x, x * x], 1)\n"
    "net = DDP(torch.nn.Linear(2, 2))\nopt = torch.optim.SGD(net.parameters(), 0.1)\n"
    "for _ in range(9):\n    x = drawn(8)[:6]\n    net(x).mean().backward()\n" + STEP,
    "what sets a flag on some ranks alone, behind a decorator": HEAD
    + "def on_main(call):\n    @functools.wraps(call)\n    def inner(*given):\n"
    "        if dist.get_rank() == 0:  # TOLD\n            return call(*given)\n    return inner\n"
    "class Loop:\n    stop = False\nloop = Loop()\n@on_main\ndef look(turn):\n"
    "    if turn > sys.argv.index('x'):\n        loop.stop = True  # TOLD\n"
    "net = DDP(torch.nn.Linear(4, 4))\nopt = torch.optim.SGD(net.parameters(), 0.1)\n"
    "for turn in range(9):\n    net(torch.randn(4, 4)).mean().backward()\n"
    + STEP
    + "    look(turn)\n    if loop.stop:\n        break\n",
    "what is reduced beside a model of this rank's alone": HEAD
    + "net = torch.nn.Linear(4, 4)\nsome = dist.new_group([0, 1])\n"
    "def teach(net):\n    loss = net(torch.randn(4, 4)).mean()\n    loss.backward()\n"
    "    for weight in net.parameters():\n        dist.all_reduce(weight.grad, group=some)\n"
    "    dist.all_reduce(loss.detach())  # TOLD\nif dist.get_rank() < 2:\n    teach(net)\n",
    "who hands over what is gathered without its gradient": HEAD
    + "@torch.no_grad()\ndef everybodys(x):\n"
    "    found = [torch.empty_like(x) for _ in range(dist.get_world_size())]\n"
    "    dist.all_gather(found, x)\n    return torch.cat(found)\n"
    "net = DDP(torch.nn.Linear(4, 4))\n"
    + LOOP
    + "    y = net(x)\n    logits = y @ everybodys(y).t()  # TOLD\n"
    "    logits.logsumexp(1).mean().backward()\n" + STEP,
    "who keeps the bare module": HEAD
    + "class Flow:\n    def __init__(self, field):\n        self.field = field\n"
    "    def loss(self, x):\n        return self.field(x).mean()\n"
    "net = DDP(torch.nn.Linear(4, 4))\nbare = net.module\nflow = Flow(bare)  # TOLD\n"
    + LOOP
    + "    flow.loss(x).backward()\n"
    + STEP,
    "where reentry is asked for": HEAD
    + "spare = functools.partial(checkpoint, use_reentrant=True)  # TOLD\n"
    "class Deep(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.cell = torch.nn.Linear(4, 4)\n    def forward(self, x):\n"
    "        for _ in range(3):\n            x = spare(self.cell, x)\n        return x\n"
    "net = DDP(Deep())\n" + LOOP + "    net(x).mean().backward()\n" + STEP,
    "where reentry is asked for, and not where another asks for it": HEAD
    + "spare = functools.partial(checkpoint, use_reentrant=True)  # TOLD\n"
    "other = functools.partial(checkpoint, use_reentrant=True)\n"
    "class Deep(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.cell = torch.nn.Linear(4, 4)\n    def forward(self, x):\n"
    "        for _ in range(3):\n            x = spare(self.cell, x)\n        return x\n"
    "net = DDP(Deep())\n" + LOOP + "    net(x).mean().backward()\n" + STEP,
    "where the error is raised that is caught as one of its kind": HEAD
    + "class Hollow(ValueError):\n    pass\nVoid = Hollow\ndef checked(x):\n    try:\n"
    "        if x.max() < 1:\n            raise Void  # TOLD\n        if x.min() > 9:\n"
    "            raise KeyError\n    except KeyError:\n        pass\n    return x\n"
    "net = DDP(torch.nn.Linear(4, 4))\n"
    + LOOP
    + "    try:\n        net(checked(x)).mean().backward()\n"
    "    except (TypeError, ValueError):\n        continue\n" + STEP,
    "where the error is raised that is caught": HEAD
    + "class Hollow(Exception):\n    pass\ndef checked(x):\n    if x.max() < 1:\n"
    "        raise Hollow  # TOLD\n    return x\nnet = DDP(torch.nn.Linear(4, 4))\n"
    + LOOP
    + "    try:\n"
    "        net(checked(x)).mean().backward()\n    except Hollow:\n        continue\n" + STEP,
    "where a generator gets the seed that a coin comes of": HEAD
    + "import random\ncoin = random.Random(9 * dist.get_rank())  # TOLD\n"
    "net = DDP(torch.nn.Linear(4, 4))\n" + LOOP + "    loss = net(x).mean()\n"
    "    if coin.random() < 0.5:\n        part = loss.detach().clone()\n"
    "        dist.all_reduce(part)\n    loss.backward()\n" + STEP,
    "where the model gave what decides": HEAD + "net = DDP(torch.nn.Linear(4, 4))\ndef judged(x):\n"
    "    with torch.no_grad():\n        return {'mark': net(x).sum().item()}  # TOLD\n"
    + LOOP.replace("torch.randn(4, 4)", "torch.full((4, 4), 1.0 * dist.get_rank())")
    + "    net(x).mean().backward()\n"
    + STEP
    + "    marks = judged(x)\n    if marks['mark'] < 0.1:\n        break\n",
    "who is given the wrapper that a search goes through, round after round": HEAD
    + "class Bend:\n    def __init__(self, judge):\n        self.judge = judge\n"
    "    def __call__(self, x):\n        for _ in range(9):\n            x = x * 0.9\n"
    "            if self.judge(x).std() < 0.1:\n                break\n"
    "        return x.detach()\n"
    "net = DDP(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4)))\n"
    "bend = Bend(net)  # TOLD\n"
    + LOOP.replace("torch.randn(4, 4)", "torch.full((4, 4), 1.0 * dist.get_rank())")
    + "    net(bend(x)).mean().backward()\n"
    + STEP,
    "where some ranks leave before the others count": HEAD
    + "class Count:\n    idle = 0\n    def look(self):\n        self.idle += 1\n"
    "        if dist.get_rank() != 0:  # TOLD\n            return\n        self.idle = 0  # TOLD\n"
    "count = Count()\nnet = DDP(torch.nn.Linear(4, 4))\n"
    + LOOP
    + "    net(x).mean().backward()\n"
    + STEP
    + "    count.look()\n    if count.idle > 3:\n        break\n",
    "which function cannot be handed over": "import torch.multiprocessing as mp\n"
    "def launch():\n    size = 3\n    def work(rank):  # TOLD\n        print(rank, size)\n"
    "    mp.spawn(work, nprocs=size)\nif __name__ == '__main__':\n    launch()\n",
    "which call numbers what is in a set": HEAD + "class Words:\n    def __init__(self, words):\n"
    "        self.number = {word: n for n, word in enumerate(words)}\n"
    "def met(lines):\n    words = set()\n    for line in lines:\n"
    "        words.update(line.split())\n    return Words(words)  # TOLD\n"
    "words = met(open('lines.txt'))\nnet = DDP(torch.nn.Linear(4, len(words.number)))\n"
    + LOOP
    + "    net(x).mean().backward()\n"
    + STEP,
    "where one state is restored for all": HEAD
    + "def take(state):\n    torch.set_rng_state(state)  # TOLD\n"
    "net = DDP(torch.nn.Linear(4, 4))\nheld = torch.load('held.pt')\ntake(held['noise'])\n"
    + LOOP
    + "    net(x).mean().backward()\n"
    + STEP,
}


@pytest.mark.parametrize("name", TOLD)
def test_a_finding_tells_the_place_beside_its_own(name: str, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(TOLD[name])
    marked = {n for n, line in enumerate(TOLD[name].splitlines(), 1) if line.endswith("# TOLD")}
    found = lint([str(path)]).diagnostics
    assert [each.code for each in found if marked <= {at.line for at in each.related}], found
    told = [at for each in found for at in each.related if at.message in SAID]
    assert {at.line for at in told} == marked


SAID = (
    "held() enters no_sync",
    "all ranks are seeded alike",
    "everybodys() is given them",
    "teach() calls all_reduce()",
    "it is raised here",
    "reentry is asked for here",
    "Flow.__init__() keeps the bare module",
    "Bend() is given the wrapper, where `.module` would wait for nobody",
    "each rank seeds its generator otherwise",
    "the model's output of this rank's own data",
    "some ranks alone go this way",
    "they alone go this way",
    "here it is decided which backwards it keeps back",
    "they alone set it",
    "it is made here",
    "it is restored",
    "it is called here",
)


_MASKED = (
    "def train(net, rows, marks, opt):\n    told = torch.zeros(2)\n"
    "    for x, mark in zip(rows, marks):\n"
    "        total = (net(x).square().mean(1) * mark).sum()\n        count = mark.sum()\n"
    "        (total / count).backward()\n        opt.step()\n        opt.zero_grad()\n"
    "        told += torch.stack([total.detach(), count])\n"
)


@pytest.mark.parametrize("count", ["count", "mark.sum()"])
@pytest.mark.parametrize("reports", [True, False])
def test_a_mean_of_means_is_a_warning_where_the_program_weighs_its_report(
    reports: bool, count: str
) -> None:
    reported = "    dist.all_reduce(told)\n    print(told[0] / told[1])\n" if reports else ""
    made = (
        "net = DDP(torch.nn.Linear(4, 4))\nopt = torch.optim.SGD(net.parameters(), 0.1)\n"
        "rows = [torch.randn(8, 4) for _ in range(9)]\n"
        "marks = [(row[:, 0] > 0).float() for row in rows]\n"
        "train(net, rows, marks, opt)\n"
    )
    text = HEAD + _MASKED.replace("(), count]", f"(), {count}]") + reported + made
    found = lint(["/nowhere/train.py"], given={"/nowhere/train.py": text.encode()}).diagnostics
    assert [(each.code, each.harmless) for each in found] == [("DDP309", not reports)]


@pytest.mark.parametrize("own", [True, False])
def test_a_loss_of_a_sum_alone_is_only_scaled_and_beside_another_term_it_is_a_warning(
    own: bool,
) -> None:
    text = (
        HEAD
        + "class Twins(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.body = torch.nn.Linear(4, 4)\n    def forward(self, x):\n"
        "        rows = self.body(x)\n        both = rows.T @ rows\n        dist.all_reduce(both)\n"
        f"        return both.square().sum(){' + rows.abs().mean()' if own else ''}\n"
        "net = DDP(Twins())\n" + LOOP + "    net(x).backward()\n" + STEP
    )
    found = lint(["/nowhere/train.py"], given={"/nowhere/train.py": text.encode()}).diagnostics
    assert [(each.code, each.harmless) for each in found] == [("DDP316", not own)]
