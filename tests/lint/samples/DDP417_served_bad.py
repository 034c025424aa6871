import torch
import torch.distributed as dist


class Caller:
    def __init__(self, other):
        self.other = other

    def ask(self, question):
        dist.send(question, self.other)  # <-- DDP417
        answer = torch.empty_like(question)
        dist.recv(answer, self.other)
        return answer


def main():
    dist.init_process_group("gloo")
    print(Caller(dist.get_rank() ^ 1).ask(torch.ones(3)))


if __name__ == "__main__":
    main()
