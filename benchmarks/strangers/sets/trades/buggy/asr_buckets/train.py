import argparse
import logging

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Subset

from dataset import VOCAB, FrameBudgetSampler, ToyUtterances, collate
from executor import Executor


class Encoder(nn.Module):
    def __init__(self, feat_dim=16, hidden=32):
        super().__init__()
        self.conv = nn.Conv1d(feat_dim, hidden, 5, padding=2)
        self.rnn = nn.GRU(hidden, hidden, batch_first=True)
        self.ctc = nn.Linear(hidden, VOCAB)

    def forward(self, x):
        x = torch.relu(self.conv(x.transpose(1, 2))).transpose(1, 2)
        x, _ = self.rnn(x)
        return self.ctc(x).log_softmax(-1)


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--max_epoch", type=int, default=3)
    p.add_argument("--max_frames", type=int, default=400)
    p.add_argument("--lr", type=float, default=4e-3)
    return p.parse_args()


def main():
    args = get_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    logging.basicConfig(
        level=logging.INFO if rank == 0 else logging.WARNING, format="%(levelname)s %(message)s"
    )
    torch.manual_seed(777)
    configs = {"grad_clip": 5.0, "log_interval": 5}

    train_set, cv_set = ToyUtterances(150, seed=1), ToyUtterances(24, seed=2)
    sampler = FrameBudgetSampler(train_set.num_frames, args.max_frames, rank, world)
    train_loader = DataLoader(train_set, batch_sampler=sampler, collate_fn=collate)
    cv_loader = DataLoader(
        Subset(cv_set, range(rank, len(cv_set), world)), batch_size=4, collate_fn=collate
    )

    model = DistributedDataParallel(Encoder())
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / 10))
    executor = Executor()

    for epoch in range(args.max_epoch):
        sampler.set_epoch(epoch)
        executor.train(model, optimizer, scheduler, train_loader, configs)
        dist.barrier()
        cv_loss = executor.cv(model, cv_loader)
        logging.info("Epoch %d CV loss %.4f", epoch, cv_loss)

    dist.destroy_process_group()


if __name__ == "__main__":
    main()
