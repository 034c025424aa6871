"""REINFORCE on a toy dialogue. Sequences end at different times; all ranks decode until the last one is done."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel

WORDS, END, LIMIT = 10, 0, 30


class Speaker(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(WORDS, 24)
        self.norm = nn.BatchNorm1d(24)
        self.out = nn.Linear(24, WORDS)

    def forward(self, word, h):
        h = self.cell(nn.functional.one_hot(word, WORDS).float(), h)
        return self.out(self.norm(h)), h


@torch.no_grad()
def talk(model, n):
    word, h = torch.ones(n, dtype=torch.long), torch.zeros(n, 24)
    said, done = [word], torch.zeros(n, dtype=torch.bool)
    while len(said) < LIMIT:
        logits, h = model(word, h)
        word = torch.multinomial(logits.softmax(1), 1)[:, 0].masked_fill(done, END)
        said.append(word)
        done |= word == END
        left = (~done).sum()
        dist.all_reduce(left)
        if left == 0:
            break
    return torch.stack(said, 1)


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(11 * rank)
    model = DistributedDataParallel(Speaker(), broadcast_buffers=True)
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for it in range(5):
        model.eval()
        said = talk(model, 4 + rank)
        reward = -(said != END).float().sum(1)
        model.train()
        model.require_backward_grad_sync = False
        h, total = torch.zeros(len(said), 24), 0.0
        steps = said.shape[1] - 1
        for t in range(steps):
            logits, h = model.module(said[:, t], h)
            logp = logits.log_softmax(1).gather(1, said[:, t + 1:t + 2])[:, 0]
            total = total + (logp * (reward - reward.mean()) * (said[:, t] != END)).mean()
        opt.zero_grad()
        (-total / steps).backward()
        for p in model.parameters():
            dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
        opt.step()
        if rank == 0:
            print(it, "length", -reward.mean().item(), "steps", steps, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
