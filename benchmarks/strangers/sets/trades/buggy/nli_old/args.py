import argparse


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--per_gpu_train_batch_size", default=8, type=int)
    parser.add_argument("--learning_rate", default=5e-3, type=float)
    parser.add_argument("--num_train_epochs", default=2, type=int)
    parser.add_argument("--warmup_steps", default=5, type=int)
    parser.add_argument("--max_grad_norm", default=1.0, type=float)
    parser.add_argument("--logging_steps", default=10, type=int)
    parser.add_argument("--seed", default=42, type=int)
    parser.add_argument("--local_rank", type=int, default=-1, help="For distributed training: local_rank")
    return parser.parse_args()
