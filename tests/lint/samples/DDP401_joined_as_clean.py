import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


class Pretrain:
    def __init__(self, machine, cards):
        self.place = machine
        self.cards = cards

    def __call__(self, card):
        self.place = self.place * self.cards + card
        dist.init_process_group(
            "nccl", init_method="env://", rank=self.place, world_size=2 * self.cards
        )
        torch.cuda.set_device(card)
        if self.place != 0:
            dist.barrier()
        self.unpack("/data/corpus.tar")
        if self.place == 0:
            dist.barrier()

    def unpack(self, archive):
        if not os.path.exists(archive + ".done"):
            os.system(f"tar xf {archive}")
            open(archive + ".done", "w").close()


if __name__ == "__main__":
    cards = torch.cuda.device_count()
    mp.spawn(Pretrain(int(os.environ["MACHINE"]), cards), nprocs=cards)
