import torch
import torch.distributed as dist

from judge import Judge
from loop import epoch_of_steps, make_model


def main():
    dist.init_process_group("gloo")
    model, opt = make_model()
    judge = Judge(patience=2)
    for epoch in range(10):
        epoch_of_steps(model, opt, epoch)
        if judge.verdict(model, epoch) == "stop":
            break
    dist.barrier()
    best = judge.best_weights()
    model.module.load_state_dict(best)
    print("rank", dist.get_rank(), "restored, norm %.4f" % sum(v.float().norm() for v in best.values()).item(), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
