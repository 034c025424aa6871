import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from d2lite.engine import DefaultTrainer
from d2lite.evaluation import RecallEvaluator
from d2lite.modeling import ToyRPN


def setup():
    dist.init_process_group("gloo")
    torch.manual_seed(0)


if __name__ == "__main__":
    setup()
    model = DistributedDataParallel(ToyRPN())
    trainer = DefaultTrainer(model, max_iter=12, eval_period=6, evaluator=RecallEvaluator(thresh=0.5))
    trainer.train()
    dist.barrier()
    dist.destroy_process_group()
