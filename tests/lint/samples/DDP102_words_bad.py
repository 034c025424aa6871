from torch import distributed as job

join = job.init_process_group


class Session:
    def __enter__(self):
        join("gloo")
        return job.get_rank()

    def __exit__(self, *error):
        job.destroy_process_group()


class Trainer:
    def __init__(self):
        join("gloo")  # <-- DDP102


def main():
    job.init_process_group("gloo")
    return Trainer()


if __name__ == "__main__":
    main()
