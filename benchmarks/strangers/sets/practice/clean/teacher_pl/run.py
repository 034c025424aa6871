import torch
import torch.distributed as dist

from semi import SemiTrainer, StudentNet


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    t = SemiTrainer(StudentNet(), momentum=0.95)
    for it in range(40):
        info = t.iteration(it)
        if it % 10 == 0 and dist.get_rank() == 0:
            print(it, {k: round(v, 3) for k, v in info.items()}, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
