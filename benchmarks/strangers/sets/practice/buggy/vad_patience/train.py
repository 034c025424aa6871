"""Voice activity detector, frame level.  torchrun --nproc_per_node=2 train.py"""
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from data import make_train, make_dev
from engine import fit
from net import FrameClassifier


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1234)
    model = DistributedDataParallel(FrameClassifier(n_mels=20, hidden=24))
    train_dl = make_train(rank, world)
    dev_dl = make_dev(rank, world)
    history = fit(model, train_dl, dev_dl, max_epochs=12, patience=2, lr=0.05)
    dist.barrier()
    if rank == 0:
        torch.save(model.module.state_dict(), "/tmp/vad_final.pt")
        print("epochs run:", len(history), "last dev loss: %.4f" % history[-1])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
