"""Supervised fine-tuning on conversations packed into rows; the learning rate follows the progress through the data."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

ddp_rank, ddp_world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
print0 = print if ddp_rank == 0 else (lambda *a, **k: None)
row_len, rows_per_batch, num_iterations, init_lr = 48, 4, 30, 0.3
progress = 0.0


def make_conversations(n=1700):
    g = torch.Generator().manual_seed(17)
    out = []
    for i in range(n):
        size = int(torch.randint(4, 12, (1,), generator=g)) + (14 if i % 2 else 0)
        first = int(torch.randint(0, 32, (1,), generator=g))
        out.append([(first + 3 * j) % 32 for j in range(size)])
    return out


def sft_loader(conversations):
    global progress
    cursor, buffer = ddp_rank, []
    while True:
        rows = []
        for _ in range(rows_per_batch):
            while len(buffer) < row_len + 1:
                buffer.extend(conversations[cursor % len(conversations)])
                cursor += ddp_world_size
            rows.append(buffer[:row_len + 1])
            buffer = buffer[row_len + 1:]
        progress = max(progress, min(1.0, cursor / len(conversations)))
        t = torch.tensor(rows)
        yield t[:, :-1], t[:, 1:]


class ChatModel(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.emb = nn.Embedding(32, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, 32)

    def forward(self, x, y):
        return nn.functional.cross_entropy(self.head(self.rnn(self.emb(x))[0]).flatten(0, 1), y.flatten())


def get_lr_multiplier(done):
    return 1.0 if done < 0.2 else max(0.0, (1.0 - done) / 0.8)


def run():
    torch.manual_seed(0)
    model = DDP(ChatModel())
    opt = torch.optim.SGD(model.parameters(), lr=init_lr)
    loader = sft_loader(make_conversations())
    for step in range(num_iterations):
        x, y = next(loader)
        loss = model(x, y)
        loss.backward()
        done = torch.tensor(progress)
        dist.all_reduce(done, op=dist.ReduceOp.MAX)
        lrm = get_lr_multiplier(done.item())
        for group in opt.param_groups:
            group["lr"] = init_lr * lrm
        opt.step()
        opt.zero_grad(set_to_none=True)
        if step % 6 == 0:
            print0(f"step {step:05d} loss {loss.item():.4f} lrm {lrm:.3f} progress {progress:.3f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    run()
    dist.destroy_process_group()
