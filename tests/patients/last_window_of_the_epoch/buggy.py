# style: accumulation with left-over micro-batches, EMA of the loss, scheduler
from contextlib import ExitStack

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Parity(Dataset):
    def __init__(self, size=104):
        generator = torch.Generator().manual_seed(4)
        self.bits = torch.randint(0, 2, (size, 6), generator=generator).float()

    def __len__(self):
        return len(self.bits)

    def __getitem__(self, index):
        return self.bits[index], self.bits[index].sum() % 2


class Meter:
    def __init__(self, decay=0.9):
        self.decay, self.value = decay, None

    def update(self, value):
        self.value = value if self.value is None else self.decay * self.value + 0.1 * value


def train_one_epoch(model, loader, optimizer, scheduler, meter, accumulate=4):
    model.train()
    total = len(loader)
    for i, (x, y) in enumerate(loader):
        is_full = (i + 1) % accumulate == 0
        with ExitStack() as stack:
            if not is_full:
                stack.enter_context(model.no_sync())
            loss = nn.functional.binary_cross_entropy_with_logits(model(x).squeeze(1), y)
            (loss / accumulate).backward()
        meter.update(loss.item())
        if is_full or i + 1 == total:  # <-- DDP315
            optimizer.step()  # <-- DDP315
            scheduler.step()
            optimizer.zero_grad()


def main():
    torch.manual_seed(3)
    model = DDP(nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1)))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.99)
    dataset = Parity()
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=5, sampler=sampler)
    meter = Meter()
    for epoch in range(3):
        sampler.set_epoch(epoch)
        train_one_epoch(model, loader, optimizer, scheduler, meter)
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: {meter.value:.4f}")


if __name__ == "__main__":
    dist.init_process_group("gloo")
    main()
    dist.destroy_process_group()
