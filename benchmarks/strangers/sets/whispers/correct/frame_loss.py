"""Speech-like model whose loss is weighted by the frames of all processes."""
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

COMM = dict(rank=0, size=1)


def init():
    dist.init_process_group("gloo")
    COMM.update(rank=dist.get_rank(), size=dist.get_world_size())


def global_sum(*values):
    t = torch.tensor([float(v) for v in values])
    dist.all_reduce(t)
    return t.tolist()


class Recogniser(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(8, 24, batch_first=True)
        self.out = nn.Linear(24, 10)

    def forward(self, feats, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(feats, lengths, batch_first=True, enforce_sorted=False)
        h, _ = nn.utils.rnn.pad_packed_sequence(self.rnn(packed)[0], batch_first=True, total_length=feats.shape[1])
        return self.out(h)


def utterances(g, n=6):
    lengths = torch.randint(4, 30, (n,), generator=g)
    lengths[0] = 30
    feats = torch.randn(n, 30, 8, generator=g)
    labels = feats.argmax(-1)
    labels[torch.arange(30)[None] >= lengths[:, None]] = -1
    return feats, lengths, labels


def main():
    init()
    torch.manual_seed(1)
    model = DDP(Recogniser())
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    g = torch.Generator().manual_seed(COMM["rank"])
    for step in range(40):
        feats, lengths, labels = utterances(g)
        loss_sum = nn.functional.cross_entropy(model(feats, lengths).flatten(0, 1), labels.flatten(),
                                               ignore_index=-1, reduction="sum")
        frames, total = global_sum((labels >= 0).sum(), loss_sum.detach())
        loss = loss_sum * COMM["size"] / frames
        opt.zero_grad()
        loss.backward()
        opt.step()
        if COMM["rank"] == 0 and step % 10 == 9:
            print(f"step {step + 1} loss {total / frames:.4f} over {int(frames)} frames", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
