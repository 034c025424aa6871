import torch
import torch.distributed as dist
from options import parser_of_all


def main(options):
    model = torch.nn.Linear(4, 1)
    if options.local_rank >= 0:
        model.to(options.local_rank)
    print(model(torch.randn(2, 4, device=model.weight.device)), dist.is_available())


if __name__ == "__main__":
    main(parser_of_all().parse_args())
