"""Curriculum over sequence length; rank 0 picks stages, writes reports and keeps the best weights."""
import json
import os
import shutil
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

STAGES = {"short": 4, "middle": 8, "long": 12}


class Adder(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.out = nn.GRU(1, 24, batch_first=True), nn.Linear(24, 1)

    def forward(self, x):
        return self.out(self.rnn(x)[0][:, -1])


def is_main():
    return dist.get_rank() == 0


def sums(gen, length, n=16):
    x = torch.rand(n, length, 1, generator=gen)
    return x, x.sum(1) / 4


def stage_score(net, length):
    """Every worker scores its own 32 problems, the sums are added up."""
    gen = torch.Generator().manual_seed(9000 + dist.get_rank())
    x, y = sums(gen, length, 32)
    with torch.no_grad():
        part = torch.tensor([(net(x) - y).abs().sum().item(), float(len(x))], dtype=torch.float64)
    dist.all_reduce(part)
    return (part[0] / part[1]).item()


def choose_next(history, names):
    plan = [None]
    if is_main():
        solved = {n for n, err in history if err < 0.08}
        rest = [n for n in names if n not in solved]
        plan[0] = rest[0] if rest and len(history) < 6 else ""
    dist.broadcast_object_list(plan, src=0)
    return plan[0]


def keep_best(net, folder, err, best):
    if err >= best:
        return best
    if is_main():
        path = os.path.join(folder, "best.pt")
        torch.save(net.state_dict(), path + ".tmp")
        os.replace(path + ".tmp", path)
    return err


def run(folder):
    torch.manual_seed(13)
    model = DDP(Adder())
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    gen = torch.Generator().manual_seed(13 + 1 + dist.get_rank())
    history, best = [], {}
    while name := choose_next(history, list(STAGES)):
        for _ in range(25):
            x, y = sums(gen, STAGES[name])
            loss = nn.functional.l1_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        err = stage_score(model.module, STAGES[name])
        history.append((name, err))
        best[name] = keep_best(model.module, folder, err, best.get(name, float("inf")))
    if is_main():
        with open(os.path.join(folder, "report.json"), "w") as f:
            json.dump(history, f)
        print([(n, round(e, 3)) for n, e in history], flush=True)


def main():
    dist.init_process_group("gloo")
    box = [tempfile.mkdtemp(prefix="curriculum_")] if is_main() else [None]
    dist.broadcast_object_list(box, src=0)
    run(box[0])
    dist.barrier()
    if is_main():
        shutil.rmtree(box[0])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
