"""Texture refinement with a patch critic.

    python train.py --strategy single
    torchrun --nproc-per-node 2 train.py
"""
import argparse

import torch
import torch.nn.functional as F

from losses import Running, content, hinge_critic, hinge_gen, r1, set_grad
from nets import PatchCritic, Refiner
from strategy import REGISTRY, raw


def textures(n, side, seed):
    g = torch.Generator().manual_seed(seed)
    sharp = torch.randn(n, 1, side, side, generator=g).cumsum(-1)
    sharp = (sharp - sharp.mean((2, 3), keepdim=True)) / sharp.std((2, 3), keepdim=True)
    smooth = F.interpolate(F.avg_pool2d(sharp, 4), scale_factor=4, mode="bilinear")
    return smooth, sharp


class Duel:
    def __init__(self, st, args):
        self.st, self.args = st, args
        self.turn = 0
        torch.manual_seed(args.seed)
        self.gen = st.prepare(Refiner())
        self.critic = st.prepare(PatchCritic())
        self.opt_g = torch.optim.Adam(self.gen.parameters(), args.lr, betas=(0.5, 0.9))
        self.opt_c = torch.optim.Adam(self.critic.parameters(), args.lr, betas=(0.5, 0.9))

    def critic_step(self, smooth, sharp):
        with torch.no_grad():
            made = raw(self.gen)(smooth)
        loss = hinge_critic(self.critic(sharp), self.critic(made))
        self.opt_c.zero_grad()
        loss.backward()
        self.opt_c.step()
        self.turn += 1
        if self.turn % self.args.r1_every == 0:
            self.smooth_critic(sharp)
        return loss.detach()

    def smooth_critic(self, sharp):
        penalty = self.args.r1 / 2 * self.args.r1_every * r1(self.critic, sharp)
        self.opt_c.zero_grad()
        penalty.backward()
        self.opt_c.step()

    def gen_step(self, smooth, sharp):
        set_grad(raw(self.critic), False)
        made = self.gen(smooth)
        loss = content(made, sharp) + self.args.adv * hinge_gen(raw(self.critic)(made))
        self.opt_g.zero_grad()
        loss.backward()
        self.opt_g.step()
        set_grad(raw(self.critic), True)
        return loss.detach()

    def run(self):
        smooth, sharp = textures(self.args.n, 16, seed=1)
        for epoch in range(self.args.epochs):
            order = torch.randperm(len(smooth), generator=torch.Generator().manual_seed(epoch))
            log = Running()
            for rows in order[self.st.rank::self.st.world].split(self.args.batch):
                log.put(critic=self.critic_step(smooth[rows], sharp[rows]),
                        gen=self.gen_step(smooth[rows], sharp[rows]))
            if self.st.rank == 0:
                print(f"epoch {epoch}  {log.line()}", flush=True)


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--strategy", choices=sorted(REGISTRY), default="ddp")
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--n", type=int, default=128)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--adv", type=float, default=0.1)
    p.add_argument("--r1", type=float, default=0.05)
    p.add_argument("--r1-every", type=int, default=4)
    p.add_argument("--seed", type=int, default=0)
    args = p.parse_args()
    st = REGISTRY[args.strategy]()
    Duel(st, args).run()
    st.close()
