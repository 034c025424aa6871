import shutil
import tempfile

import torch
import torch.distributed as dist

from hooks import CheckpointHook, LogHook
from model import CTCEncoder
from trainer import Trainer


def utterances(n, seed):
    g = torch.Generator().manual_seed(seed)
    return [(torch.randn(30, 12, generator=g), torch.randint(1, 8, (6,), generator=g)) for _ in range(n)]


def main():
    dist.init_process_group("gloo")
    box = [tempfile.mkdtemp(prefix="asr_")] if dist.get_rank() == 0 else [None]
    dist.broadcast_object_list(box, src=0)
    work_dir = box[0]
    torch.manual_seed(11)
    trainer = Trainer(CTCEncoder(12, 24, 8), utterances(32, dist.get_rank()), max_epochs=2)
    trainer.register(CheckpointHook(work_dir, interval=1))
    trainer.register(LogHook())
    trainer.train()
    dist.barrier()

    scorer = CTCEncoder(12, 24, 8)
    trainer.restore(scorer, f"{work_dir}/epoch_2.pt")
    scorer.eval()
    with torch.no_grad():
        x = torch.stack([u for u, _ in utterances(4, 99)])
        print("rank", dist.get_rank(), "blank rate %.3f" % (scorer(x).argmax(-1) == 0).float().mean())
    dist.barrier()
    if dist.get_rank() == 0:
        shutil.rmtree(work_dir)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
