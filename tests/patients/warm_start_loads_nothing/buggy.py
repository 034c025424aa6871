# style: fine-tuning from a pretrained checkpoint, frozen-free
# nproc: 2
import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 32))
        self.head = nn.Linear(32, 2)

    def forward(self, x):
        return self.head(torch.relu(self.layers(x)))


def fit(model, loader, epochs, lr):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for epoch in range(epochs):
        loader.sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
    return loss.item()


def data(seed):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(32, 8, generator=generator)
    dataset = TensorDataset(x, (x.sum(dim=1) > 0).long())
    return DataLoader(dataset, batch_size=4, sampler=DistributedSampler(dataset))


def pretrain(path):
    model = DDP(Backbone())
    loss = fit(model, data(0), epochs=1, lr=1e-2)
    if dist.get_rank() == 0:
        torch.save({"state_dict": model.state_dict(), "loss": loss}, path)  # <-- DDP508
    dist.barrier()


def finetune(path):
    model = Backbone()
    checkpoint = torch.load(path, map_location="cpu")
    state = checkpoint["state_dict"]
    model.load_state_dict(state, strict=False)  # <-- DDP508
    return fit(DDP(model), data(1), epochs=2, lr=1e-3)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pretrained", default=os.path.join(os.getcwd(), "pretrained.pth"))
    args = parser.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    pretrain(args.pretrained)
    loss = finetune(args.pretrained)
    if dist.get_rank() == 0:
        print(f"fine-tuned: {loss:.4f}")


if __name__ == "__main__":
    main()
    dist.destroy_process_group()
