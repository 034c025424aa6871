import argparse

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from stream import ClickStream, write_shards


class CTRModel(torch.nn.Module):
    def __init__(self, n_items=200, dim=16):
        super().__init__()
        self.emb = torch.nn.EmbeddingBag(n_items, dim, mode="mean")
        self.out = torch.nn.Linear(dim, 1)

    def forward(self, items):
        return self.out(self.emb(items)).squeeze(-1)


def get_args():
    ap = argparse.ArgumentParser()
    ap.add_argument("--data-dir", default="clicks")
    ap.add_argument("--epochs", type=int, default=2)
    ap.add_argument("--batch-size", type=int, default=25)
    ap.add_argument("--num-workers", type=int, default=2)
    return ap.parse_args()


def main():
    args = get_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    if rank == 0:
        write_shards(args.data_dir, n_shards=8, rows_per_shard=100)
    dist.barrier()

    torch.manual_seed(0)
    dataset = ClickStream(args.data_dir, rank, world)
    loader = torch.utils.data.DataLoader(dataset, batch_size=args.batch_size, num_workers=args.num_workers)
    model = DistributedDataParallel(CTRModel())
    optim = torch.optim.Adagrad(model.parameters(), lr=0.1)
    bce = torch.nn.BCEWithLogitsLoss()

    for epoch in range(args.epochs):
        total, steps, rows = 0.0, 0, 0
        for items, clicked in loader:
            loss = bce(model(items), clicked)
            optim.zero_grad()
            loss.backward()
            optim.step()
            total, steps, rows = total + loss.item(), steps + 1, rows + len(clicked)
        count = torch.tensor(rows)
        dist.all_reduce(count)
        if rank == 0:
            print(f"epoch {epoch} steps {steps} rows {count.item()} loss {total / steps:.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
