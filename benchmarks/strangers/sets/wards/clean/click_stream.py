"""Two-tower retrieval on an endless-looking log of clicks.   torchrun --nproc_per_node 2 click_stream.py"""
import torch
import torch.nn.functional as F
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

USERS, ITEMS, FILES, ROWS = 200, 120, 8, 256


def read_log(no):
    g = torch.Generator().manual_seed(60 + no)
    for _ in range(ROWS):
        u = int(torch.randint(0, USERS, (1,), generator=g))
        yield u, (7 * u + int(torch.randint(0, 4, (1,), generator=g))) % ITEMS


class ClickLog(IterableDataset):
    """Every process opens its own files."""

    def __init__(self, accelerator, files=FILES):
        self.part, self.parts = accelerator.process_index, accelerator.num_processes
        self.files = list(range(files))

    def __iter__(self):
        for no in self.files[self.part::self.parts]:
            for user, item in read_log(no):
                yield torch.tensor(user), torch.tensor(item)


class Towers(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.user = nn.Embedding(USERS, dim)
        self.item = nn.Embedding(ITEMS, dim)

    def forward(self, u, i):
        return self.user(u) @ self.item(i).t() / 0.5


def recall_at_10(net):
    u = torch.arange(USERS)
    top = net(u, torch.arange(ITEMS)).topk(10, dim=1).indices
    good = (7 * u[:, None] + torch.arange(4)) % ITEMS
    return (top[:, :, None] == good[:, None]).any(1).float().mean().item()


def main(epochs=6, batch=32):
    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True)
    torch.manual_seed(0)
    net = Towers()
    opt = torch.optim.Adam(net.parameters(), lr=2e-2)
    loader = DataLoader(ClickLog(accelerator), batch_size=batch, drop_last=True)
    net, opt = accelerator.prepare(net, opt)

    steps = 0
    for epoch in range(epochs):
        total, n = 0.0, 0
        for u, i in loader:
            logits = net(u, i)
            same = i[:, None] == i[None]
            same.fill_diagonal_(False)
            loss = F.cross_entropy(logits.masked_fill(same, -1e4), torch.arange(len(u)))
            opt.zero_grad()
            accelerator.backward(loss)
            opt.step()
            total, n, steps = total + loss.item(), n + 1, steps + 1
        mean = accelerator.gather(torch.tensor([total / n])).mean().item()
        accelerator.print(f"epoch {epoch} loss {mean:.4f}", flush=True)
    with torch.no_grad():
        r = recall_at_10(accelerator.unwrap_model(net))
    accelerator.print(f"{steps} steps, recall@10 {r:.4f}", flush=True)
    accelerator.wait_for_everyone()
    accelerator.end_training()


if __name__ == "__main__":
    main()
