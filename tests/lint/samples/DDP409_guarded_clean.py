import atexit
import torch
import torch.distributed as dist


def is_joined():
    if not dist.is_available():
        return False
    if not dist.is_initialized():
        return False
    return True


@atexit.register
def cleanup():
    if is_joined():
        dist.destroy_process_group()


def main():
    dist.init_process_group("nccl")
    dist.barrier()


if __name__ == "__main__":
    main()
