import argparse
import logging
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

parser = argparse.ArgumentParser(description='Semi-supervised segmentation')
parser.add_argument('--iters', default=20, type=int)
parser.add_argument('--batch-size', default=4, type=int)
parser.add_argument('--conf-thresh', default=0.6, type=float)
parser.add_argument('--lr', default=1e-3, type=float)
parser.add_argument('--save-path', default='seg_out', type=str)
parser.add_argument('--local-rank', type=int, default=int(os.environ.get('LOCAL_RANK', 0)))
parser.add_argument('--port', default=None, type=int)


def init_log(name, rank):
    logger = logging.getLogger(name)
    logger.setLevel(logging.INFO if rank == 0 else logging.ERROR)
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter('[%(asctime)s] %(message)s', '%H:%M:%S'))
    logger.addHandler(handler)
    return logger


def setup_distributed(backend='gloo', port=None):
    if port is not None:
        os.environ['MASTER_PORT'] = str(port)
    dist.init_process_group(backend=backend)
    return dist.get_rank(), dist.get_world_size()


class Seg(nn.Module):
    def __init__(self, classes=3, width=12):
        super().__init__()
        self.enc = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.ReLU(),
                                 nn.Conv2d(width, width, 3, padding=1), nn.ReLU())
        self.cls = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        return self.cls(self.enc(x))


def batch(n, gen):
    y = torch.randint(0, 3, (n, 4, 4), generator=gen).repeat_interleave(3, 1).repeat_interleave(3, 2)
    x = y[:, None].float() + 0.3 * torch.randn(n, 1, 12, 12, generator=gen)
    return x, y


def main():
    args = parser.parse_args()
    rank, world_size = setup_distributed(port=args.port)
    logger = init_log('global', rank)
    if rank == 0:
        logger.info(vars(args))
        os.makedirs(args.save_path, exist_ok=True)
    torch.manual_seed(0)
    model = DDP(Seg())
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    gen = torch.Generator().manual_seed(args.local_rank)

    for it in range(args.iters):
        x_l, y_l = batch(args.batch_size, gen)
        x_u, _ = batch(args.batch_size, gen)
        strong = x_u + 0.2 * torch.randn(x_u.shape, generator=gen)
        out_l, out_w, out_s = model(torch.cat([x_l, x_u, strong])).chunk(3)
        conf, pseudo = out_w.detach().softmax(1).max(1)
        loss_x = F.cross_entropy(out_l, y_l)
        loss_u = (F.cross_entropy(out_s, pseudo, reduction='none') * (conf > args.conf_thresh)).mean()
        loss = (loss_x + loss_u) / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if it % 5 == 0:
            logger.info('Iter %d, total loss %.3f, labelled %.3f', it, loss.item(), loss_x.item())
    if rank == 0:
        torch.save(model.module.state_dict(), os.path.join(args.save_path, 'latest.pth'))
    dist.destroy_process_group()


if __name__ == '__main__':
    main()
